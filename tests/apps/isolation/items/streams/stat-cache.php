<?php

/** What PHP remembers of a file's size. */

declare(strict_types=1);

return [
    'boot' => static fn () => Isolation\lines('size'),
    'leak' => static function (string $file): void {
        $text = file_get_contents($file);
        file_put_contents($file, 'dirt');
        clearstatcache();
        filesize($file);
        file_put_contents($file, $text);
    },
    'look' => static fn (string $file) => filesize($file),
    'resident' => 'reset',
];
