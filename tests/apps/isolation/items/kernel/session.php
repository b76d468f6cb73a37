<?php

/** A separate session or process group. */

declare(strict_types=1);

return [
    'leak' => static fn () => posix_setsid() < 0 && posix_setpgid(0, 0),
    'look' => static fn () => [posix_getsid(0) === posix_getpid(), posix_getpgrp() === posix_getpid()],
    'resident' => 'kept',
    'refork' => true,
    'needs' => ['posix'],
];
