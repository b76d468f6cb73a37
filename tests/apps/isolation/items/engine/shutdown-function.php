<?php

/** A shutdown function. If it leaked, its header would be in every response. */

declare(strict_types=1);

return [
    'leak' => static fn () => register_shutdown_function(static fn () => header('X-Leak: shutdown function')),
    'look' => static fn () => null,
    'resident' => 'reset',
];
