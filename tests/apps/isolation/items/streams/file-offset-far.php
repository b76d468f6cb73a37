<?php

/** The position of a long file, read in parts: the kernel's position moves too. */

declare(strict_types=1);

return [
    'boot' => static function () {
        $name = Isolation\folder() . '/long';
        file_put_contents($name, implode("\n", range(1, 100_000)));
        $file = fopen($name, 'r');
        fgets($file);

        return $file;
    },
    'leak' => static fn ($file) => [fread($file, 100_000), fseek($file, 300_000)],
    'look' => static fn ($file) => [fgets($file), fgets($file)],
    'resident' => 'kept',
];
