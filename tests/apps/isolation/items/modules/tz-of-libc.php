<?php

/** libc's time zone, which follows the environment. */

declare(strict_types=1);

return [
    'boot' => static fn () => FFI::cdef('extern long timezone;'),
    'leak' => static fn () => putenv('TZ=JST-9'),
    'look' => static fn (FFI $libc) => $libc->timezone,
    'resident' => 'reset',
    'needs' => ['FFI'],
];
