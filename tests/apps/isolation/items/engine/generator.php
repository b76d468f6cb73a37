<?php

/** A generator that was made above, advanced by a request. */

declare(strict_types=1);

return [
    'boot' => static fn () => (static fn () => yield from range(1, 100))(),
    'leak' => static fn (Generator $numbers) => $numbers->next(),
    'look' => static fn (Generator $numbers) => $numbers->current(),
    'resident' => 'kept',
];
