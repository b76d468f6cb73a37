<?php

/** A filter that a request appends to a stream that was opened above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static fn () => fopen('php://memory', 'w+'),
    'leak' => static fn ($stream) => stream_filter_append($stream, 'string.toupper', STREAM_FILTER_WRITE),
    'look' => static function ($stream): string {
        rewind($stream);
        fwrite($stream, 'tea');
        rewind($stream);

        return fread($stream, 3);
    },
    'resident' => 'kept',
];
