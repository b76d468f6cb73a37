<?php

/** The nice value of the process. */

declare(strict_types=1);

return [
    'leak' => static fn () => proc_nice(5),
    'look' => static fn () => pcntl_getpriority(),
    'resident' => 'kept',
    'refork' => true,
    'needs' => ['pcntl', 'room to be nicer'],
];
