<?php

/** Privileges that the process has given up permanently. */

declare(strict_types=1);

return [
    'boot' => static fn () => FFI::cdef('int prctl(int, ...);'),
    'leak' => static fn (FFI $libc) => $libc->prctl(38, 1, 0, 0, 0),
    'look' => static fn () => preg_grep('/^NoNewPrivs/', file('/proc/self/status')),
    'resident' => 'kept',
    'refork' => true,
    'needs' => ['FFI', 'new privileges'],
];
