<?php

/** The end of a file that was opened above the checkpoint, reached by a request. */

declare(strict_types=1);

return [
    'boot' => static fn () => fopen(Isolation\lines('end'), 'r'),
    'leak' => static fn ($file) => stream_get_contents($file),
    'look' => static fn ($file) => [feof($file), fgets($file)],
    'resident' => 'kept',
];
