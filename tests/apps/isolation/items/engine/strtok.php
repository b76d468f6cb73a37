<?php

/** The text of strtok(). */

declare(strict_types=1);

return [
    'leak' => static fn () => strtok('a/b/c/d/e/f', '/'),
    // Without a text there is a warning, since 8.3.
    'look' => static fn () => @strtok('/'),
    'resident' => 'reset',
];
