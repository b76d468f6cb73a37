<?php

/**
 * A file that was opened above the checkpoint, switched to non-blocking: the kernel keeps that with
 * the open file.
 */

declare(strict_types=1);

return [
    'boot' => static fn () => fopen(Isolation\lines('blocking'), 'r'),
    'leak' => static fn ($file) => stream_set_blocking($file, false),
    'look' => static function ($file): array {
        $flags = [];
        foreach (glob('/proc/self/fd/*') as $fd) {
            if (@readlink($fd) === Isolation\folder() . '/blocking') {
                $flags[] = preg_grep('/^flags/', file('/proc/self/fdinfo/' . basename($fd)));
            }
        }

        return [$flags, stream_get_meta_data($file)['blocked']];
    },
    'resident' => 'kept',
];
