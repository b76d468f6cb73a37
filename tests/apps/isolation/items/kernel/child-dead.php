<?php

/** Zombies: ended processes that were not waited for. */

declare(strict_types=1);

namespace Isolation\Items;

/** Waits until all child processes have ended. */
function await_ends(): void
{
    $file = '/proc/self/task/' . getmypid() . '/children';
    foreach (preg_split('/ /', file_get_contents($file), -1, PREG_SPLIT_NO_EMPTY) as $pid) {
        while (!preg_match('/^State:\s+Z/m', file_get_contents("/proc/$pid/status"))) {
            usleep(1000);
        }
    }
}

return [
    'leak' => static function (): void {
        $GLOBALS['process'] = proc_open(['true'], [], $pipes);
        if (pcntl_fork() === 0) {
            posix_kill(getmypid(), SIGKILL);
        }
        await_ends();
    },
    'look' => static fn () => \Isolation\children(),
    'resident' => 'kept',
    'needs' => ['pcntl', 'posix'],
];
