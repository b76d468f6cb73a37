<?php

/** A weak map of the application, and an entry by a request for one of its objects. */

declare(strict_types=1);

return [
    'boot' => static fn () => (object) ['map' => new WeakMap(), 'key' => new stdClass()],
    'leak' => static fn (stdClass $state) => $state->map[$state->key] = 'dirt',
    'look' => static fn (stdClass $state) => count($state->map),
    'resident' => 'kept',
];
