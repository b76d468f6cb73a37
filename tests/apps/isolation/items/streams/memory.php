<?php

/** A stream in memory that was opened above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static function () {
        $stream = fopen('php://memory', 'w+');
        fwrite($stream, 'green');

        return $stream;
    },
    'leak' => static fn ($stream) => fwrite($stream, str_repeat('dirt', 10_000)),
    'look' => static fn ($stream) => [ftell($stream), fstat($stream)['size']],
    'resident' => 'kept',
];
