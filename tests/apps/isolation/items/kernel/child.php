<?php

/** A process that still runs after the request. */

declare(strict_types=1);

return [
    'leak' => static fn () => proc_open(['sleep', '5'], [], $pipes),
    'look' => static fn () => Isolation\children(),
    'resident' => 'kept',
    'refork' => true,
];
