<?php

/** A generator created above the checkpoint, advanced by a request. */

declare(strict_types=1);

return [
    'boot' => static fn () => (static fn () => yield from range(1, 100))(),
    'leak' => static fn (Generator $numbers) => $numbers->next(),
    'look' => static fn (Generator $numbers) => $numbers->current(),
    'resident' => 'kept',
];
