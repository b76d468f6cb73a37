<?php

/** A file object created above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static fn () => new SplFileObject(Isolation\lines('object')),
    'leak' => static fn (SplFileObject $file) => $file->seek(3),
    'look' => static fn (SplFileObject $file) => [$file->key(), $file->current()],
    'resident' => 'kept',
];
