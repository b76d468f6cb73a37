<?php

declare(strict_types=1);

namespace Samovar;

/** A job under a SAPI other than Samovar, which runs at once. See php/stubs/jobs.php. */
final class Job
{
    private string $result = '';
    private string $reason = '';

    private function __construct(
        private readonly int $id = 0,
        private readonly string $queue = '',
        private readonly int $attempt = 1,
        private readonly ?string $key = null,
        private readonly mixed $payload = null,
    ) {
    }

    private function __clone()
    {
    }

    /** @internal for Samovar\Runtime\InlineJobs */
    public static function make(int $id, string $queue, int $attempt, ?string $key, mixed $payload): self
    {
        return new self($id, $queue, $attempt, $key, $payload);
    }

    public function id(): int
    {
        return $this->id;
    }

    public function queue(): string
    {
        return $this->queue;
    }

    public function attempt(): int
    {
        return $this->attempt;
    }

    public function key(): ?string
    {
        return $this->key;
    }

    /** Returns null, because there are no traces. */
    public function traceparent(): ?string
    {
        return null;
    }

    /** Returns null, because there are no traces. */
    public function tracestate(): ?string
    {
        return null;
    }

    public function payload(): mixed
    {
        return $this->payload;
    }

    public function done(): void
    {
        $this->result = 'done';
    }

    public function fail(string $reason = ''): void
    {
        [$this->result, $this->reason] = ['fail', $reason];
    }

    /** The job runs again at once. */
    public function retry(?float $delay = null, string $reason = ''): void
    {
        [$this->result, $this->reason] = ['retry', $reason];
    }

    /** The job runs again at once. */
    public function release(float $delay = 0.0): void
    {
        $this->result = 'release';
    }

    /**
     * Returns the result that the handler has set, and its reason.
     *
     * @internal for Samovar\Runtime\InlineJobs
     *
     * @return array{string, string}
     */
    public static function resultOf(self $job): array
    {
        return [$job->result, $job->reason];
    }
}
