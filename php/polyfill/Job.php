<?php

declare(strict_types=1);

namespace Samovar;

/** A job under a SAPI other than Samovar, where no code creates one. See php/stubs/jobs.php. */
final class Job
{
    private function __construct()
    {
    }

    private function __clone()
    {
    }

    public function id(): int
    {
        return 0;
    }

    public function queue(): string
    {
        return '';
    }

    public function attempt(): int
    {
        return 1;
    }

    public function key(): ?string
    {
        return null;
    }

    public function payload(): mixed
    {
        return null;
    }

    /** Does nothing. */
    public function done(): void
    {
    }

    /** Does nothing. */
    public function fail(string $reason = ''): void
    {
    }

    /** Does nothing. */
    public function retry(?float $delay = null, string $reason = ''): void
    {
    }

    /** Does nothing. */
    public function release(float $delay = 0.0): void
    {
    }
}
