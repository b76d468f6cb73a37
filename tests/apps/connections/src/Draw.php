<?php

declare(strict_types=1);

namespace Connections;

/** Random choices in an order that a seed determines. */
final class Draw
{
    private readonly \Random\Randomizer $randomizer;

    public function __construct(int $seed)
    {
        $this->randomizer = new \Random\Randomizer(new \Random\Engine\Mt19937($seed));
    }

    public function number(int $min, int $max): int
    {
        return $this->randomizer->getInt($min, $max);
    }

    public function one(array $of): mixed
    {
        return array_values($of)[$this->number(0, count($of) - 1)];
    }

    /** Whether an event happens that happens once in `$in` times. */
    public function once(int $in): bool
    {
        return $this->number(1, $in) === 1;
    }
}
