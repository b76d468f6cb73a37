<?php

/** The last errors of sockets, POSIX functions and process control. */

declare(strict_types=1);

return [
    'leak' => static function (): void {
        $socket = socket_create(AF_INET, SOCK_STREAM, SOL_TCP);
        @socket_connect($socket, '127.0.0.1', 1);
        posix_kill(1 << 30, 0);
    },
    'look' => static fn () => [socket_last_error(), posix_get_last_error()],
    'resident' => 'kept',
    'needs' => ['sockets', 'posix'],
];
