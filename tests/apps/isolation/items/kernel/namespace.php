<?php

/** The IPC namespace of the process: its shared memory and semaphores. */

declare(strict_types=1);

return [
    'leak' => static fn () => pcntl_unshare(CLONE_NEWIPC),
    'look' => static fn () => readlink('/proc/self/ns/ipc'),
    'resident' => 'kept',
    'refork' => true,
    'needs' => ['pcntl', 'root', 'namespaces'],
];
