<?php

/** A connection that PHP keeps for later requests. */

declare(strict_types=1);

namespace Isolation\Items;

final class Listening
{
    /** @var resource|null */
    public static $server;
}

return [
    'leak' => static function (): void {
        Listening::$server = stream_socket_server('tcp://127.0.0.1:0');
        $port = (int) substr(strrchr(stream_socket_get_name(Listening::$server, false), ':'), 1);
        pfsockopen('127.0.0.1', $port);
    },
    'look' => static fn () => \count(preg_grep('/socket:/', array_map(
        static fn (string $fd): string => (string) @readlink($fd),
        glob('/proc/self/fd/*'),
    ))),
    'resident' => 'kept',
];
