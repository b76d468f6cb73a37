<?php

/** A signal handler. */

declare(strict_types=1);

return [
    'leak' => static fn () => pcntl_signal(SIGURG, static fn () => null),
    'look' => static fn () => [
        is_callable(pcntl_signal_get_handler(SIGURG)),
        preg_grep('/^SigCgt/', file('/proc/self/status')),
    ],
    'resident' => 'kept',
    'needs' => ['pcntl'],
];
