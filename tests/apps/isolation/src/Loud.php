<?php

declare(strict_types=1);

namespace Isolation;

/** Says in the trace that it is destructed, and may do worse. */
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
