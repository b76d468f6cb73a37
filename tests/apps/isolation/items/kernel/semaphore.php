<?php

/** A semaphore that was opened above the checkpoint; it is the kernel's, and all workers'. */

declare(strict_types=1);

return [
    'boot' => static fn () => sem_get(ftok(Isolation\lines('semaphore'), 's')),
    'leak' => static fn (SysvSemaphore $semaphore) => sem_acquire($semaphore, true),
    'look' => static function (): bool {
        $other = sem_get(ftok(Isolation\folder() . '/semaphore', 's'));

        return sem_acquire($other, true) && sem_release($other);
    },
    'resident' => 'kept',
    'refork' => true,
    'refork' => true,
    'needs' => ['sysvsem'],
];
