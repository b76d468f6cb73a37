<?php

declare(strict_types=1);

namespace Isolation;

/** Writes to the trace in its destructor, and can then run a closure that misbehaves. */
final class Loud
{
    public function __construct(private string $whose, private ?\Closure $last = null)
    {
    }

    public function __destruct()
    {
        Ending::trace("destructor of $this->whose");
        if ($this->last !== null) {
            ($this->last)();
        }
    }
}
