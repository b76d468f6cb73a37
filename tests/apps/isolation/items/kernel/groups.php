<?php

/** The groups of the process. */

declare(strict_types=1);

return [
    'leak' => static fn () => posix_initgroups('nobody', 65533),
    'look' => static fn () => posix_getgroups(),
    'resident' => 'kept',
    'refork' => true,
    'needs' => ['posix', 'root'],
];
