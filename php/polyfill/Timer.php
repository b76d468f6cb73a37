<?php

declare(strict_types=1);

namespace Samovar;

/**
 * A timer under a SAPI other than Samovar. It measures nothing, because no statistics are
 * collected. See php/stubs/samovar.php.
 */
final class Timer
{
    private function __construct()
    {
    }

    private function __clone()
    {
    }

    /** @internal for Samovar\timer() */
    public static function make(): self
    {
        return new self();
    }

    /** Does nothing. */
    public function start(): static
    {
        return $this;
    }

    /** Does nothing. */
    public function stop(): static
    {
        return $this;
    }

    /**
     * Does nothing.
     *
     * @throws \ValueError when $seconds or $hits is negative
     */
    public function add(float $seconds, int $hits = 1): static
    {
        if (!($seconds >= 0)) {
            throw new \ValueError('Samovar\Timer::add(): Argument #1 ($seconds) must be between 0 and 1000000000');
        }
        if ($hits < 0) {
            throw new \ValueError('Samovar\Timer::add(): Argument #2 ($hits) must be between 0 and 1000000000');
        }

        return $this;
    }
}
