<?php

/** The working directory, changed without PHP's knowledge by the libc that FFI's manual opens. */

declare(strict_types=1);

return [
    'boot' => static fn () => FFI::cdef('int chdir(const char *);', 'libc.so.6'),
    'leak' => static fn (FFI $libc) => $libc->chdir('/'),
    'look' => static fn () => getcwd(),
    'resident' => 'kept',
    'refork' => null,
    'needs' => ['FFI'],
];
