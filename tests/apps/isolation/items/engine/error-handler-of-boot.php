<?php

/** The application's exception handler, removed. */

declare(strict_types=1);

return [
    'boot' => static fn () => set_exception_handler(static function (Throwable $thrown): void {
        echo 'handled: ', $thrown->getMessage();
    }),
    'leak' => static fn () => restore_exception_handler(),
    'look' => static function (): bool {
        $former = set_exception_handler(null);
        restore_exception_handler();

        return $former !== null;
    },
    'resident' => 'reset',
];
