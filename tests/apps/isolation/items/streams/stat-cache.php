<?php

/** PHP's cache of a file's size. */

declare(strict_types=1);

return [
    'boot' => static fn () => [Isolation\lines('size'), FFI::cdef('int truncate(const char *path, long length);')],
    'leak' => static function (array $state): void {
        // Truncates without PHP's knowledge: since 8.4, PHP clears its cache of sizes when it
        // writes.
        [$file, $libc] = $state;
        clearstatcache();
        $size = filesize($file);
        $libc->truncate($file, 4);
        clearstatcache();
        filesize($file);
        $libc->truncate($file, $size);
    },
    'look' => static fn (array $state) => filesize($state[0]),
    'resident' => 'reset',
    'needs' => ['FFI'],
];
