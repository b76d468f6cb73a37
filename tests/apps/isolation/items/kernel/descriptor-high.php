<?php

/** A file with a high file descriptor. */

declare(strict_types=1);

return [
    'boot' => static fn () => FFI::cdef('int dup2(int, int);'),
    'leak' => static fn (FFI $libc) => $libc->dup2(0, 900),
    'look' => static fn () => file_exists('/proc/self/fd/900'),
    'resident' => 'kept',
    'needs' => ['FFI'],
];
