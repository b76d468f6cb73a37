<?php

/** The user of the process. */

declare(strict_types=1);

return [
    'leak' => static fn () => [posix_setegid(65534), posix_seteuid(65534)],
    'look' => static fn () => [posix_geteuid(), posix_getegid()],
    'resident' => 'kept',
    'refork' => true,
    'needs' => ['posix', 'root'],
];
