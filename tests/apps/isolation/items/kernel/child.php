<?php

/** A process that still runs when the request has ended. */

declare(strict_types=1);

return [
    'leak' => static fn () => proc_open(['sleep', '5'], [], $pipes),
    'look' => static fn () => Isolation\children(),
    'resident' => 'kept',
    'refork' => true,
];
