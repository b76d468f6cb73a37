<?php

/** Properties of an object created above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static fn () => (object) ['tea' => 'green', 'list' => [1, 2]],
    'leak' => static function (stdClass $object): void {
        $object->tea = 'black';
        $object->list[] = 3;
        $object->dirt = true;
    },
    'look' => static fn (stdClass $object) => $object,
    'resident' => 'kept',
];
