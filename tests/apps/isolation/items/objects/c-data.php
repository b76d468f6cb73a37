<?php

/** Memory of C that was allocated above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static fn () => FFI::cdef()->new('int[1000]', false),
    'leak' => static fn (FFI\CData $numbers) => $numbers[500] = 77,
    'look' => static fn (FFI\CData $numbers) => $numbers[500],
    'resident' => 'kept',
    'needs' => ['FFI'],
];
