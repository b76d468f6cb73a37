<?php

/** A fiber created above the checkpoint, and is begun and ended by a request. */

declare(strict_types=1);

return [
    'boot' => static fn () => new Fiber(static fn (): int => 7),
    'leak' => static fn (Fiber $fiber) => $fiber->start(),
    'look' => static fn (Fiber $fiber) => [$fiber->isStarted(), $fiber->isTerminated()],
    'resident' => 'kept',
];
