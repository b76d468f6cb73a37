<?php

/** The text that strtok() cuts. */

declare(strict_types=1);

return [
    'leak' => static fn () => strtok('a/b/c/d/e/f', '/'),
    'look' => static fn () => strtok('/'),
    'resident' => 'kept',
];
