<?php

/** A temporary file that is not closed. */

declare(strict_types=1);

namespace Isolation\Items;

final class Kept
{
    /** @var list<resource> */
    public static array $files = [];
}

return [
    'leak' => static fn () => fwrite(Kept::$files[] = tmpfile(), 'dirt'),
    'look' => static fn () => \count(preg_grep('/deleted|php/', array_map(
        static fn (string $fd): string => (string) @readlink($fd),
        glob('/proc/self/fd/*'),
    ))),
    'resident' => 'kept',
];
