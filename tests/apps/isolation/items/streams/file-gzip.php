<?php

/** A compressed file that was opened above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static function () {
        $name = Isolation\folder() . '/lines.gz';
        file_put_contents($name, gzencode(implode("\n", range(1, 50_000))));

        return gzopen($name, 'r');
    },
    'leak' => static fn ($file) => gzread($file, 100_000),
    'look' => static fn ($file) => gzgets($file),
    'resident' => 'kept',
    'needs' => ['zlib'],
];
