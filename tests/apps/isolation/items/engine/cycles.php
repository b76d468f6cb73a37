<?php

/** Garbage that only the cycle collector frees. */

declare(strict_types=1);

return [
    'leak' => static function (): void {
        for ($n = 0; $n < 5000; $n++) {
            $object = new stdClass();
            $object->itself = $object;
        }
    },
    'look' => static fn () => array_intersect_key(gc_status(), ['runs' => 0, 'collected' => 0, 'roots' => 0]),
    'resident' => 'kept',
];
