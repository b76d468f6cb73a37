<?php

/** A POSIX timer. */

declare(strict_types=1);

return [
    'boot' => static fn () => FFI::cdef('int timer_create(int, void *, void **);'),
    'leak' => static fn (FFI $libc) => $libc->timer_create(1, null, FFI::addr($libc->new('void *'))),
    'look' => static fn () => @file_get_contents('/proc/self/timers'),
    'resident' => 'kept',
    'refork' => null,
    'needs' => ['FFI'],
];
