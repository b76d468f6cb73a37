<?php

declare(strict_types=1);

namespace Samovar;

/**
 * A task under a SAPI that is not Samovar: it has ended before async() returns. php/stubs/samovar.php says more.
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

    /** Null: what runs here runs as without tasks. */
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

    /** Does nothing: it has ended. */
    public function cancel(): void
    {
    }

    public function isDone(): bool
    {
        return true;
    }
}
