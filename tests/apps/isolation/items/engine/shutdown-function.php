<?php

/** A shutdown function: its header would be every answer's. */

declare(strict_types=1);

return [
    'leak' => static fn () => register_shutdown_function(static fn () => header('X-Leak: shutdown function')),
    'look' => static fn () => null,
    'resident' => 'reset',
];
