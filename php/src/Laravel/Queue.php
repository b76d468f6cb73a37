<?php

declare(strict_types=1);

namespace Samovar\Runtime\Laravel;

use Illuminate\Contracts\Queue\Queue as QueueContract;
use Illuminate\Queue\Queue as BaseQueue;

/**
 * Laravel's queues in the store of the server: the name of a queue is that of a `[[queue]]`.
 *
 * Laravel decides on retries (`$tries`, `$backoff`, `retryUntil()`), so jobs are pushed with the
 * maximum number of attempts.
 */
final class Queue extends BaseQueue implements QueueContract
{
    private const ATTEMPTS = 1_000;
    /** Maximum number of jobs in one push. */
    private const BULK = 1_000;

    public function __construct(private string $default, bool $dispatchAfterCommit)
    {
        $this->dispatchAfterCommit = $dispatchAfterCommit;
    }

    /** @param string|null $queue */
    public function size($queue = null): int
    {
        return array_sum($this->depth($queue));
    }

    /** @param string|null $queue */
    public function pendingSize($queue = null): int
    {
        return $this->depth($queue)['ready'];
    }

    /** @param string|null $queue */
    public function delayedSize($queue = null): int
    {
        return $this->depth($queue)['delayed'];
    }

    /** @param string|null $queue */
    public function reservedSize($queue = null): int
    {
        return $this->depth($queue)['running'];
    }

    /** @param string|null $queue */
    public function creationTimeOfOldestPendingJob($queue = null): ?int
    {
        return null;
    }

    /**
     * @param object|string $job
     * @param mixed $data
     * @param string|null $queue
     */
    public function push($job, $data = '', $queue = null): mixed
    {
        return $this->later(0, $job, $data, $queue);
    }

    /**
     * @param string $payload
     * @param string|null $queue
     * @param array<string, mixed> $options
     */
    public function pushRaw($payload, $queue = null, array $options = []): ?int
    {
        return $this->store($payload, $queue, 0);
    }

    /**
     * @param \DateTimeInterface|\DateInterval|int $delay
     * @param object|string $job
     * @param mixed $data
     * @param string|null $queue
     */
    public function later($delay, $job, $data = '', $queue = null): mixed
    {
        $payload = $this->createPayload($job, $this->name($queue), $data);
        $store = fn (string $payload, ?string $queue, mixed $delay): ?int => $this->store($payload, $queue, $delay);

        return $this->enqueueUsing($job, $payload, $queue, $delay, $store);
    }

    /**
     * Pushes jobs together. Those with a delay, and those that wait for a commit, are pushed one
     * after another.
     *
     * @param array<object|string> $jobs
     * @param mixed $data
     * @param string|null $queue
     */
    public function bulk($jobs, $data = '', $queue = null): void
    {
        $payloads = [];
        foreach ((array) $jobs as $job) {
            $delay = \is_object($job) ? $job->delay ?? null : null;
            if ($delay !== null || $this->shouldDispatchAfterCommit($job)) {
                $this->later($delay ?? 0, $job, $data, $queue);
            } else {
                $payloads[] = $this->createPayload($job, $this->name($queue), $data);
            }
        }
        foreach (array_chunk($payloads, self::BULK) as $chunk) {
            \Samovar\queue($this->name($queue))->pushMany($chunk, attempts: self::ATTEMPTS);
        }
    }

    /**
     * Always null: the server passes the jobs to the handler of the `[[queue]]`.
     *
     * @param string|null $queue
     */
    public function pop($queue = null): ?Job
    {
        return null;
    }

    /** @param \DateTimeInterface|\DateInterval|int $delay */
    private function store(string $payload, ?string $queue, mixed $delay): ?int
    {
        $seconds = max(0, $this->secondsUntil($delay));

        return \Samovar\queue($this->name($queue))->push($payload, delay: $seconds, attempts: self::ATTEMPTS);
    }

    /** @return array{ready: int, delayed: int, running: int} */
    private function depth(?string $queue): array
    {
        return \Samovar\queue($this->name($queue))->depth();
    }

    private function name(?string $queue): string
    {
        return $queue ?: $this->default;
    }
}
