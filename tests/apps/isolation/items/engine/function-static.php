<?php

/** A static variable of a function. */

declare(strict_types=1);

namespace Isolation\Items;

function poured(): int
{
    static $cups = 0;

    return ++$cups;
}

return [
    'boot' => poured(...),
    'leak' => static fn () => poured(),
    'look' => static fn () => poured(),
    'resident' => 'kept',
];
