<?php

/** A resource limit of the kernel. */

declare(strict_types=1);

return [
    'leak' => static fn () => posix_setrlimit(POSIX_RLIMIT_CORE, 0, 4096),
    'look' => static fn () => [posix_getrlimit()['soft core'], posix_getrlimit()['hard core']],
    'resident' => 'kept',
    'refork' => true,
    'needs' => ['posix'],
];
