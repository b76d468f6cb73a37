<?php

/** A function that is called at each tick. */

declare(strict_types=1);

namespace Isolation\Items;

final class Ticks
{
    public static int $n = 0;

    public static function tick(): void
    {
        self::$n++;
    }
}

return [
    'leak' => static fn () => register_tick_function([Ticks::class, 'tick']),
    'look' => static function (): bool {
        Ticks::$n = 0;
        declare(ticks=1) {
            $a = 1;
            $b = 2;
        }

        return Ticks::$n > 0;
    },
    'resident' => 'reset',
];
