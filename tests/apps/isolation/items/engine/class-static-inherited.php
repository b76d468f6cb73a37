<?php

/** A static property that two classes share, and one that each has. */

declare(strict_types=1);

namespace Isolation\Items;

class Vessel
{
    public static int $all = 0;
    public static int $own = 0;
}

final class Mug extends Vessel
{
    public static int $own = 0;
}

return [
    'leak' => static function (): void {
        Mug::$all++;
        Mug::$own++;
    },
    'look' => static fn () => [Vessel::$all, Vessel::$own, Mug::$own],
    'resident' => 'kept',
];
