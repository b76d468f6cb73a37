<?php

/** An iterator created above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static fn () => new LimitIterator(new InfiniteIterator(new ArrayIterator(range('a', 'g'))), 0, 99),
    'leak' => static fn (Iterator $iterator) => $iterator->next(),
    'look' => static function (Iterator $iterator): mixed {
        $iterator->next();

        return $iterator->current();
    },
    'resident' => 'kept',
];
