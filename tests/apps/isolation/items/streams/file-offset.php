<?php

/** The position of a file that was opened above the checkpoint, read through PHP's buffer. */

declare(strict_types=1);

return [
    'boot' => static fn () => fopen(Isolation\lines('offset'), 'r'),
    'leak' => static fn ($file) => fgets($file),
    'look' => static fn ($file) => fgets($file),
    'resident' => 'kept',
];
