<?php

/** A static variable of a method, and of the one that a class inherits. */

declare(strict_types=1);

namespace Isolation\Items;

class Counter
{
    public static function count(): int
    {
        static $n = 0;

        return ++$n;
    }
}

final class ChildCounter extends Counter
{
}

return [
    'leak' => static fn () => ChildCounter::count(),
    'look' => static fn () => [Counter::count(), ChildCounter::count()],
    'resident' => 'kept',
];
