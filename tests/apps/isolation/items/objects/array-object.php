<?php

/** Lists and maps of SPL created above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static fn () => [new ArrayObject([1]), new SplObjectStorage(), new SplFixedArray(2)],
    'leak' => static function (array $of): void {
        $of[0][] = 'dirt';
        $of[1]->attach(new stdClass(), 'dirt');
        $of[2]->setSize(77);
    },
    'look' => static fn (array $of) => array_map(count(...), $of),
    'resident' => 'kept',
];
