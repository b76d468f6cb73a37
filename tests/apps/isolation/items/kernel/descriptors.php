<?php

/** Files that are not closed. */

declare(strict_types=1);

namespace Isolation\Items;

final class Opened
{
    /** @var list<resource> */
    public static array $files = [];
}

return [
    'leak' => static function (): void {
        for ($n = 0; $n < 100; $n++) {
            Opened::$files[] = fopen(__FILE__, 'r');
        }
    },
    'look' => static fn () => \count(scandir('/proc/self/fd')),
    'resident' => 'kept',
];
