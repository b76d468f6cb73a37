<?php

/** A file that was opened above the checkpoint, closed by a request. */

declare(strict_types=1);

return [
    'boot' => static fn () => (object) ['file' => fopen(Isolation\lines('closed'), 'r')],
    'leak' => static fn (stdClass $state) => fclose($state->file),
    'look' => static fn (stdClass $state) => is_resource($state->file) ? fgets($state->file) : 'closed',
    'resident' => 'kept',
    'refork' => true,
];
