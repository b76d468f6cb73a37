<?php

/** A class that is declared at run time and extends a class of the application. */

declare(strict_types=1);

namespace Isolation\Items;

class Parental
{
    public int $n = 1;
}

return [
    'leak' => static fn () => eval('namespace Isolation\Items; final class Dirt extends Parental {}'),
    'look' => static fn () => class_exists(Dirt::class),
    'resident' => 'kept',
];
