<?php

/** A static variable of an enum's method. */

declare(strict_types=1);

namespace Isolation\Items;

enum Kind: string
{
    case Green = 'green';
    case Black = 'black';

    public function asked(): int
    {
        static $times = 0;

        return ++$times;
    }
}

return [
    'leak' => static fn () => Kind::from('green')->asked(),
    'look' => static fn () => Kind::tryFrom('black')->asked(),
    'resident' => 'kept',
];
