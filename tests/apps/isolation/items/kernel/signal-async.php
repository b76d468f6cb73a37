<?php

/** Whether signals are handled at once. */

declare(strict_types=1);

return [
    'leak' => static fn () => pcntl_async_signals(true),
    'look' => static fn () => pcntl_async_signals(),
    'resident' => 'kept',
    'needs' => ['pcntl'],
];
