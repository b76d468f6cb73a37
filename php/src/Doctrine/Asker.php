<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Samovar\Task;

/** Who asks: a fiber of an event loop is by itself, as a task is. */
final class Asker
{
    /** Null: the request itself. */
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
