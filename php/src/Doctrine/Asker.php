<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Samovar\Task;

/** The current task or fiber. A fiber of an event loop counts as separate, like a task. */
final class Asker
{
    /** Returns the current fiber or task, or null for the request itself. */
    public static function now(): ?object
    {
        return \Fiber::getCurrent() ?? Task::current();
    }

    public static function isOver(object $asker): bool
    {
        return match (true) {
            $asker instanceof Task => $asker->isDone(),
            $asker instanceof \Fiber => $asker->isTerminated(),
            default => false,
        };
    }
}
