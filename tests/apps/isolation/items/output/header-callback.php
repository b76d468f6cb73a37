<?php

/** A function that is called before the headers are sent. */

declare(strict_types=1);

return [
    'leak' => static fn () => header_register_callback(static fn () => header('X-Leak: callback')),
    'look' => static fn () => null,
    'resident' => 'reset',
];
