<?php

/** A pending signal, which is blocked. */

declare(strict_types=1);

return [
    'leak' => static fn () => [pcntl_sigprocmask(SIG_BLOCK, [SIGUSR1]), posix_kill(getmypid(), SIGUSR1)],
    'look' => static fn () => preg_grep('/^(SigPnd|ShdPnd)/', file('/proc/self/status')),
    'resident' => 'kept',
    'refork' => null,
    'needs' => ['pcntl', 'posix'],
];
