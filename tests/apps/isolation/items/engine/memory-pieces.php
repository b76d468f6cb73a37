<?php

/** The heap cut into small pieces of all sizes, and held. */

declare(strict_types=1);

namespace Isolation\Items;

final class Pieces
{
    /** @var list<string> */
    public static array $all = [];
}

return [
    'leak' => static function (): void {
        for ($n = 1; $n < 20_000; $n++) {
            Pieces::$all[] = str_repeat('x', $n % 3000);
        }
    },
    'look' => static fn () => memory_get_usage(true),
    'resident' => 'kept',
];
