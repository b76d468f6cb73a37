<?php

/** A suspended generator that a request ends. */

declare(strict_types=1);

return [
    'boot' => static function (): Generator {
        $generator = (static function (): Generator {
            try {
                yield 1;
                yield 2;
            } catch (RuntimeException) {
                yield 77;
            }
        })();
        $generator->current();

        return $generator;
    },
    'leak' => static fn (Generator $generator) => $generator->throw(new RuntimeException('dirt')),
    'look' => static fn (Generator $generator) => $generator->current(),
    'resident' => 'kept',
];
