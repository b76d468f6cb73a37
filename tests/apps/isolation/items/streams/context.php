<?php

/** The default stream context. */

declare(strict_types=1);

return [
    'leak' => static fn () => stream_context_set_default(['http' => ['method' => 'DIRT']]),
    'look' => static fn () => stream_context_get_options(stream_context_get_default()),
    'resident' => 'reset',
];
