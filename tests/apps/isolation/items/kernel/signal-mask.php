<?php

/** Blocked signals. */

declare(strict_types=1);

return [
    'leak' => static fn () => pcntl_sigprocmask(SIG_BLOCK, [SIGUSR1, SIGCHLD]),
    'look' => static fn () => preg_grep('/^SigBlk/', file('/proc/self/status')),
    'resident' => 'kept',
    'needs' => ['pcntl'],
];
