<?php

/** Shared memory that a request maps directly. */

declare(strict_types=1);

return [
    'boot' => static fn () => FFI::cdef('void *mmap(void *, size_t, int, int, int, long);'),
    'leak' => static fn (FFI $libc) => $libc->mmap(null, 77 << 12, 3, 0x21, -1, 0),
    'look' => static fn () => count(preg_grep('{rw-s.*/dev/zero}', file('/proc/self/maps'))),
    'resident' => 'kept',
    'needs' => ['FFI'],
];
