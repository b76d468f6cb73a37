<?php

/** A timer that would later end the process. */

declare(strict_types=1);

return [
    'leak' => static fn () => pcntl_alarm(1000),
    'look' => static function (): bool {
        $left = pcntl_alarm(0);
        pcntl_alarm($left);

        return $left > 0;
    },
    'resident' => 'kept',
    'needs' => ['pcntl'],
];
