<?php

/** An ignored signal. */

declare(strict_types=1);

return [
    'leak' => static fn () => pcntl_signal(SIGWINCH, SIG_IGN),
    'look' => static fn () => preg_grep('/^SigIgn/', file('/proc/self/status')),
    'resident' => 'kept',
    'needs' => ['pcntl'],
];
