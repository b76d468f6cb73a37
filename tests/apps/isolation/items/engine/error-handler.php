<?php

/** An error handler. */

declare(strict_types=1);

return [
    'leak' => static fn () => set_error_handler(static fn () => true),
    'look' => static function (): bool {
        $former = set_error_handler(null);
        restore_error_handler();

        return $former !== null;
    },
    'resident' => 'reset',
];
