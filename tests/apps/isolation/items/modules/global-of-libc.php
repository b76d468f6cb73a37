<?php

/** A variable of libc. */

declare(strict_types=1);

return [
    'boot' => static fn () => FFI::cdef('extern int optind;'),
    'leak' => static fn (FFI $libc) => $libc->optind = 77,
    'look' => static fn (FFI $libc) => $libc->optind,
    'resident' => 'kept',
    'needs' => ['FFI'],
];
