<?php

/** A static variable of a first-class callable. */

declare(strict_types=1);

namespace Isolation\Items;

function brewed(): int
{
    static $pots = 0;

    return ++$pots;
}

return [
    'boot' => static fn () => brewed(...),
    'leak' => static fn (\Closure $callable) => $callable(),
    'look' => static fn (\Closure $callable) => $callable(),
    'resident' => 'kept',
];
