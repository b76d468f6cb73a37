<?php

declare(strict_types=1);

namespace Connections;

/** Processes that use the connection of their grandparent, and outlive its visit. */
trait Descendants
{
    private const WAIT_MS = 300;
    private const CPU_SECONDS = 1;
    private const SECONDS = 3;

    /** Runs an operation in a grandchild after this process has gone on.
     *
     * @param array{string, mixed} $operation */
    public function daemon(array $operation): string
    {
        if (pcntl_fork() === 0) {
            if (pcntl_fork() === 0) {
                // Two processes that read one socket may wait for ever.
                posix_setrlimit(POSIX_RLIMIT_CPU, self::CPU_SECONDS, self::CPU_SECONDS);
                pcntl_alarm(self::SECONDS);
                usleep(1000);
                [$verb, $arguments] = $operation;
                $this->$verb(...$arguments);
                touch("{$this->place}.{$this->database}.done");
            }
            // Without the destructors, which would end the session.
            posix_kill(posix_getpid(), SIGKILL);
        }
        pcntl_wait($status);

        return 'forked';
    }

    /** Waits until the grandchild of a former visit is done. A server may have ended it. */
    public function await(): string
    {
        $file = "{$this->place}.{$this->database}.done";
        for ($i = 0; $i < self::WAIT_MS && !file_exists($file); $i++) {
            usleep(1000);
            clearstatcache();
        }
        @unlink($file);

        return 'awaited';
    }
}
