<?php

/** The error reporting level. */

declare(strict_types=1);

return [
    'leak' => static fn () => error_reporting(E_ERROR),
    'look' => static fn () => error_reporting(),
    'resident' => 'reset',
];
