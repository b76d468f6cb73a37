<?php

/** A lock on a file that was opened above the checkpoint, as other processes see it. */

declare(strict_types=1);

return [
    'boot' => static fn () => fopen(Isolation\lines('lock'), 'r+'),
    'leak' => static fn ($file) => flock($file, LOCK_EX | LOCK_NB),
    'look' => static function (): bool {
        $other = fopen(Isolation\folder() . '/lock', 'r+');

        return flock($other, LOCK_EX | LOCK_NB);
    },
    'resident' => 'kept',
];
