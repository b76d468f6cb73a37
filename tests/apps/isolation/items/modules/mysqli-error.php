<?php

/** The last failure to connect. */

declare(strict_types=1);

return [
    'leak' => static function (): void {
        try {
            mysqli_connect('127.0.0.1', 'dirt', 'dirt', 'dirt', 1);
        } catch (mysqli_sql_exception) {
        }
    },
    'look' => static fn () => mysqli_connect_errno(),
    'resident' => 'kept',
    'needs' => ['mysqli'],
];
