<?php

/** A private static property, written by reflection. */

declare(strict_types=1);

namespace Isolation\Items;

final class Sealed
{
    private static string $content = 'tea';
}

return [
    'leak' => static fn () => (new \ReflectionClass(Sealed::class))->setStaticPropertyValue('content', 'dirt'),
    'look' => static fn () => (new \ReflectionClass(Sealed::class))->getStaticPropertyValue('content'),
    'resident' => 'kept',
];
