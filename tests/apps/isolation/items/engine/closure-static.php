<?php

/** A static variable of a closure created above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static fn () => static function (): int {
        static $calls = 0;

        return ++$calls;
    },
    'leak' => static fn (Closure $closure) => $closure(),
    'look' => static fn (Closure $closure) => $closure(),
    'resident' => 'kept',
];
