<?php

/** The number that the next object gets. */

declare(strict_types=1);

namespace Isolation\Items;

final class Crowd
{
    /** @var list<\stdClass> */
    public static array $all = [];
}

return [
    'leak' => static function (): void {
        for ($n = 0; $n < 100; $n++) {
            Crowd::$all[] = new \stdClass();
        }
    },
    'look' => static fn () => spl_object_id(new \stdClass()),
    'resident' => 'kept',
];
