<?php

/** Connected and listening sockets that are not closed. */

declare(strict_types=1);

namespace Isolation\Items;

final class Sockets
{
    /** @var list<mixed> */
    public static array $all = [];
}

return [
    'leak' => static function (): void {
        Sockets::$all[] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        Sockets::$all[] = stream_socket_server('tcp://127.0.0.1:0');
        Sockets::$all[] = socket_create(AF_INET, SOCK_DGRAM, SOL_UDP);
    },
    'look' => static fn () => \count(preg_grep('/socket:/', array_map(
        static fn (string $fd): string => (string) @readlink($fd),
        glob('/proc/self/fd/*'),
    ))),
    'resident' => 'kept',
    'needs' => ['sockets'],
];
