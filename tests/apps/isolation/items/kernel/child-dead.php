<?php

/** Processes that have ended, and that nobody has asked about: zombies. */

declare(strict_types=1);

namespace Isolation\Items;

function await_end(int $pid): void
{
    while (!preg_match('/^State:\s+Z/m', file_get_contents("/proc/$pid/status"))) {
        usleep(1000);
    }
}

return [
    'leak' => static function (): void {
        $fork = pcntl_fork();
        if ($fork === 0) {
            posix_kill(getmypid(), SIGKILL);
        }
        await_end($fork);
        $GLOBALS['process'] = proc_open(['true'], [], $pipes);
        await_end(proc_get_status($GLOBALS['process'])['pid']);
    },
    'look' => static fn () => \Isolation\children(),
    'resident' => 'kept',
    'needs' => ['pcntl', 'posix'],
];
