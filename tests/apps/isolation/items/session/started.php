<?php

/** A session with data. */

declare(strict_types=1);

return [
    'leak' => static function (): void {
        session_start();
        $_SESSION['dirt'] = 1;
    },
    'look' => static fn () => [session_status(), isset($_SESSION), session_id() !== ''],
    'resident' => 'reset',
];
