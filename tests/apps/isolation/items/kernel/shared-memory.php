<?php

/** Shared memory that a request attaches and does not detach. */

declare(strict_types=1);

namespace Isolation\Items;

final class Attached
{
    public static ?\Shmop $memory = null;
}

return [
    'boot' => static fn () => ftok(\Isolation\lines('shared'), 's'),
    'leak' => static function (int $key): void {
        Attached::$memory = shmop_open($key, 'c', 0600, 4096);
        shmop_delete(Attached::$memory);
    },
    'look' => static fn () => \count(preg_grep('/SYSV/', file('/proc/self/maps'))),
    'resident' => 'kept',
    'needs' => ['shmop', 'sysvsem'],
];
