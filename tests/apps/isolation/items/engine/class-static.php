<?php

/** A static property. */

declare(strict_types=1);

namespace Isolation\Items;

final class Pot
{
    public static int $cups = 0;
}

return [
    'boot' => static fn () => Pot::$cups = 1,
    'leak' => static fn () => Pot::$cups++,
    'look' => static fn () => Pot::$cups,
    'resident' => 'kept',
];
