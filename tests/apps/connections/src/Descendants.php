<?php

declare(strict_types=1);

namespace Connections;

/** Processes that use the connection of their grandparent, and outlive its visit. */
trait Descendants
{
    private const WAIT_MS = 300;
    private const CPU_SECONDS = 1;
    private const SECONDS = 10;

    /** Runs an operation in a grandchild during the next visit, which awaits it: two processes that
     * read one socket at once may wait for ever, so the end of this visit comes first.
     *
     * @param array{string, mixed} $operation */
    public function daemon(array $operation): string
    {
        foreach (['started', 'done'] as $state) {
            @unlink($this->file($state));
        }
        if (pcntl_fork() === 0) {
            if (pcntl_fork() === 0) {
                posix_setrlimit(POSIX_RLIMIT_CPU, self::CPU_SECONDS, self::CPU_SECONDS);
                pcntl_alarm(self::SECONDS);
                while (!file_exists($this->file('started'))) {
                    usleep(1000);
                    clearstatcache();
                }
                [$verb, $arguments] = $operation;
                $this->$verb(...$arguments);
                touch($this->file('done'));
            }
            // Without the destructors, which would end the session.
            posix_kill(posix_getpid(), SIGKILL);
        }
        pcntl_wait($status);

        return 'forked';
    }

    /** Starts the operation of the former visit's grandchild, and waits until it is done. A server
     * may have ended the process. */
    public function await(): string
    {
        touch($this->file('started'));
        for ($i = 0; $i < self::WAIT_MS && !file_exists($this->file('done')); $i++) {
            usleep(1000);
            clearstatcache();
        }

        return 'awaited';
    }

    private function file(string $state): string
    {
        return "{$this->place}.{$this->database}.{$state}";
    }
}
