<?php

/** A large string, which is a separate mapping. Small strings are kept for the next request. */

declare(strict_types=1);

namespace Isolation\Items;

final class Mapped
{
    public static string $large = '';

    /** Returns whether there is a private mapping large enough for the string. */
    public static function isLarge(): bool
    {
        preg_match_all('/^([0-9a-f]+)-([0-9a-f]+) rw-p/m', file_get_contents('/proc/self/maps'), $maps);
        $sizes = array_map(static fn (string $from, string $to) => hexdec($to) - hexdec($from), $maps[1], $maps[2]);

        return max($sizes) > 140 << 20;
    }
}

return [
    'leak' => static fn () => Mapped::$large = str_repeat('dirt', 40 << 20),
    'look' => Mapped::isLarge(...),
    'resident' => 'kept',
];
