<?php

/** The number of classes, interfaces and traits. */

declare(strict_types=1);

return [
    'leak' => static fn () => eval('trait Dirt_1 {} interface Dirt_2 {} enum Dirt_3 {} new class { use Dirt_1; };'),
    'look' => static fn () => count(get_declared_classes()) + count(get_declared_interfaces())
        + count(get_declared_traits()),
    'resident' => 'kept',
];
