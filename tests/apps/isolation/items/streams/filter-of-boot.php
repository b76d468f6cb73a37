<?php

/** A user filter on a stream that was opened above the checkpoint: its buckets and its counter. */

declare(strict_types=1);

namespace Isolation\Items;

final class Counting extends \php_user_filter
{
    public static int $bytes = 0;

    public function filter($in, $out, &$consumed, bool $closing): int
    {
        while ($bucket = stream_bucket_make_writeable($in)) {
            self::$bytes += $bucket->datalen;
            $consumed += $bucket->datalen;
            stream_bucket_append($out, $bucket);
        }

        return \PSFS_PASS_ON;
    }
}

return [
    'boot' => static function () {
        stream_filter_register('isolation.counting', Counting::class);
        $stream = fopen('php://memory', 'w+');
        stream_filter_append($stream, 'isolation.counting', STREAM_FILTER_WRITE);

        return $stream;
    },
    'leak' => static fn ($stream) => fwrite($stream, 'dirt'),
    'look' => static fn ($stream) => [Counting::$bytes, ftell($stream)],
    'resident' => 'kept',
];
