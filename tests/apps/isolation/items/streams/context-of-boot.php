<?php

/** A context created above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static fn () => stream_context_create(['http' => ['method' => 'GET']]),
    'leak' => static fn ($context) => stream_context_set_option($context, 'http', 'method', 'DIRT'),
    'look' => static fn ($context) => stream_context_get_options($context),
    'resident' => 'kept',
];
