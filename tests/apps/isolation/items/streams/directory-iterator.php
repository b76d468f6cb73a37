<?php

/** A directory iterator: the kernel's read position. */

declare(strict_types=1);

return [
    'boot' => static function (): DirectoryIterator {
        $folder = Isolation\subfolder('iterated');
        array_map(static fn (int $n) => touch("$folder/$n"), range(1, 500));

        return new DirectoryIterator($folder);
    },
    'leak' => static fn (DirectoryIterator $iterator) => $iterator->next(),
    'look' => static fn (DirectoryIterator $iterator) => [$iterator->key(), $iterator->getFilename()],
    'resident' => 'kept',
];
