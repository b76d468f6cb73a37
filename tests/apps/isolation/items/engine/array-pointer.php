<?php

/** The internal pointer of an array created above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static fn () => new class {
        /** @var list<string> */
        public array $teas = ['green', 'black', 'white'];
    },
    'leak' => static fn (object $object) => next($object->teas),
    'look' => static fn (object $object) => current($object->teas),
    'resident' => 'kept',
];
