<?php

/** A directory that was opened above the checkpoint: how far the kernel has read it. */

declare(strict_types=1);

return [
    'boot' => static function () {
        $folder = Isolation\subfolder('directory');
        array_map(static fn (int $n) => touch("$folder/$n"), range(1, 5));

        return opendir($folder);
    },
    'leak' => static fn ($directory) => readdir($directory),
    'look' => static fn ($directory) => readdir($directory),
    'resident' => 'kept',
];
