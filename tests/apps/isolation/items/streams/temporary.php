<?php

/** A stream in memory that was opened above the checkpoint, and outgrows it. */

declare(strict_types=1);

return [
    'boot' => static fn () => fopen('php://temp/maxmemory:1024', 'w+'),
    'leak' => static fn ($stream) => fwrite($stream, str_repeat('dirt', 10_000)),
    'look' => static fn ($stream) => [ftell($stream), fstat($stream)['size']],
    'resident' => 'kept',
];
