<?php

declare(strict_types=1);

namespace Samovar;

/**
 * A task under a SAPI other than Samovar. It ends before async() returns. See php/stubs/tasks.php.
 */
final class Task
{
    private mixed $result = null;
    private ?\Throwable $thrown = null;

    private function __construct()
    {
    }

    private function __clone()
    {
    }

    /** Returns null, because code runs without tasks here. */
    public static function current(): ?self
    {
        return null;
    }

    /** @internal for Samovar\async() */
    public static function run(callable $work): self
    {
        $task = new self();
        try {
            $task->result = $work();
        } catch (\Throwable $e) {
            $task->thrown = $e;
        }

        return $task;
    }

    public function await(?float $timeout = null): mixed
    {
        if ($this->thrown !== null) {
            throw $this->thrown;
        }

        return $this->result;
    }

    /** Does nothing, because the task has ended. */
    public function cancel(): void
    {
    }

    public function isDone(): bool
    {
        return true;
    }
}
