<?php

/** A file object that was made above. */

declare(strict_types=1);

return [
    'boot' => static fn () => new SplFileObject(Isolation\lines('object')),
    'leak' => static fn (SplFileObject $file) => $file->seek(3),
    'look' => static fn (SplFileObject $file) => [$file->key(), $file->current()],
    'resident' => 'kept',
];
