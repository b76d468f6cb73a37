<?php

declare(strict_types=1);

namespace Samovar;

/** A queue under a SAPI other than Samovar. Jobs need a server. See php/stubs/jobs.php. */
final class Queue
{
    private function __construct(private readonly string $name)
    {
    }

    private function __clone()
    {
    }

    /** @internal for Samovar\queue() */
    public static function make(string $name): self
    {
        return new self($name);
    }

    /** @throws \RuntimeException because there is no server that stores the job */
    public function push(
        mixed $payload,
        float $delay = 0.0,
        ?string $key = null,
        int $priority = 0,
        int $attempts = 0,
        float $uniqueFor = 0.0,
    ): ?int {
        throw $this->refusal();
    }

    /** @throws \RuntimeException because there is no server that stores the jobs */
    public function pushMany(
        array $payloads,
        float $delay = 0.0,
        int $priority = 0,
        int $attempts = 0,
    ): array {
        throw $this->refusal();
    }

    private function refusal(): \RuntimeException
    {
        return new \RuntimeException("The queue `{$this->name}` needs a Samovar server: no job was pushed");
    }
}
