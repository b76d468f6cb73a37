<?php

/** A variable that a closure holds by reference. */

declare(strict_types=1);

return [
    'boot' => static function (): Closure {
        $held = [];

        return static function (?string $more = null) use (&$held): array {
            return $more === null ? $held : $held[] = [$more];
        };
    },
    'leak' => static fn (Closure $closure) => $closure('dirt'),
    'look' => static fn (Closure $closure) => $closure(),
    'resident' => 'kept',
];
