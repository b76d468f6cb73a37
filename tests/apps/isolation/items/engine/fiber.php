<?php

/** A fiber that was started above the checkpoint: its C stack is part of the image. */

declare(strict_types=1);

return [
    'boot' => static function (): Fiber {
        $fiber = new Fiber(static function (): void {
            for ($n = 1; $n < 1000; $n++) {
                Fiber::suspend($n);
            }
        });
        $fiber->start();

        return $fiber;
    },
    'leak' => static fn (Fiber $fiber) => $fiber->resume(),
    'look' => static fn (Fiber $fiber) => $fiber->resume(),
    'resident' => 'kept',
];
