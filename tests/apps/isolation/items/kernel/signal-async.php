<?php

/** The mode of asynchronous signal handling. */

declare(strict_types=1);

return [
    'leak' => static fn () => pcntl_async_signals(true),
    'look' => static fn () => pcntl_async_signals(),
    'resident' => 'reset',
    'needs' => ['pcntl'],
];
