<?php

/** The working directory. */

declare(strict_types=1);

return [
    'leak' => static fn () => chdir('/'),
    'look' => static fn () => [getcwd(), readlink('/proc/self/cwd')],
    'resident' => 'reset',
];
