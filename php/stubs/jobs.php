<?php

/**
 * IDE stubs for queues of jobs. Add this file to your IDE's include path. It is never loaded at run
 * time.
 *
 * docs/guide/queues.md shows examples. check.php in this folder compares the stubs with a running
 * server.
 */

declare(strict_types=1);

namespace Samovar {
    /** Returns the queue of that name. The settings define it with a table [[queue]]. */
    function queue(string $name): Queue
    {
    }

    /**
     * Calls $handler with the jobs of each batch. The handler script of a [[queue]] calls it once.
     * The code above it is booted once, as above checkpoint(). The code below it, and the handler,
     * run for each batch, and their changes to memory are rolled back.
     *
     * When $handler returns, its jobs are done, except those with another result. When an exception
     * leaves it, jobs without a result run again later. Its output is discarded.
     *
     * @param callable(Job ...): mixed $handler
     *
     * @throws \Error when it is called for a request that is no batch
     */
    function consume(callable $handler): void
    {
    }

    /** A queue of jobs. Create it with queue(). */
    final class Queue
    {
        private function __construct()
        {
        }

        /**
         * Stores a job, and returns when it is durable: it survives a crash of the server and a
         * loss of power.
         *
         * Returns the job's number, or null when it was not stored because another unique job with
         * $key exists.
         *
         * @param null|bool|int|float|string|array<mixed> $payload at most 48 KiB as JSON
         * @param float $delay seconds before the first run
         * @param string|null $key for concurrency_per_key and for unique jobs
         * @param int $priority jobs with larger numbers run first
         * @param int $attempts number of runs before the job is dead; 0: the queue's own
         * @param float $uniqueFor seconds for which no other unique job with $key is stored while
         * this one waits or runs; 0: not unique
         * @param bool $afterResponse stores the job when the request has succeeded, and returns
         * null: its response is complete, its status is below 500, and no fatal error or uncaught
         * exception has ended it. Errors of the store are in the log. Outside a request it has no
         * effect
         *
         * @throws \TypeError when the payload contains an object or a resource
         * @throws \ValueError when an argument is not allowed, or there is no such queue
         * @throws \RuntimeException when the store is full or has failed
         */
        public function push(
            mixed $payload,
            float $delay = 0.0,
            ?string $key = null,
            int $priority = 0,
            int $attempts = 0,
            float $uniqueFor = 0.0,
            bool $afterResponse = false,
        ): ?int {
        }

        /**
         * Stores up to 1,000 jobs, all or none, and returns their numbers. It is faster than as
         * many calls of push().
         *
         * @param array<mixed> $payloads
         * @param bool $afterResponse as for push(); then the list is empty
         * @param array<array{delay?: float, key?: ?string, priority?: int, attempts?: int, uniqueFor?: float}>
         * $options arguments of push() for single jobs, instead of those of all jobs. They have the
         * key of their payload
         *
         * @return list<int|null> null: as for push()
         *
         * @throws \TypeError when a payload contains an object or a resource, or an option has the
         * wrong type
         * @throws \ValueError when an argument is not allowed, or there is no such queue
         * @throws \RuntimeException when the store is full or has failed
         */
        public function pushMany(
            array $payloads,
            float $delay = 0.0,
            int $priority = 0,
            int $attempts = 0,
            bool $afterResponse = false,
            array $options = [],
        ): array {
        }

        /**
         * Returns the numbers of ready, delayed and running jobs. Dead jobs are in none of them.
         *
         * @return array{ready: int, delayed: int, running: int}
         *
         * @throws \ValueError when there is no such queue
         * @throws \RuntimeException when the server does not respond
         */
        public function depth(): array
        {
        }
    }

    /** A job of the batch that runs. It cannot be cloned or serialized. */
    final class Job
    {
        private function __construct()
        {
        }

        /** Returns the number that push() has returned. */
        public function id(): int
        {
        }

        /** Returns the name of its queue. */
        public function queue(): string
        {
        }

        /** Returns the number of this run: 1 for the first. */
        public function attempt(): int
        {
        }

        /** Returns the key that push() was called with. */
        public function key(): ?string
        {
        }

        /**
         * Returns the trace and the span of the request or job that pushed it, as a `traceparent`
         * of W3C Trace Context. null: it was pushed outside a trace.
         */
        public function traceparent(): ?string
        {
        }

        /** Returns the `tracestate` of that trace. */
        public function tracestate(): ?string
        {
        }

        /** Returns the payload. */
        public function payload(): mixed
        {
        }

        /** Marks the job as done, even if the handler fails later. */
        public function done(): void
        {
        }

        /** Marks the job as dead: it does not run again. */
        public function fail(string $reason = ''): void
        {
        }

        /**
         * Counts this run as failed, and runs the job again after $delay seconds. null: after the
         * queue's own delay.
         *
         * @throws \ValueError when $delay is negative
         */
        public function retry(?float $delay = null, string $reason = ''): void
        {
        }

        /**
         * Puts the job back without counting this run. It runs again after $delay seconds.
         *
         * @throws \ValueError when $delay is negative
         */
        public function release(float $delay = 0.0): void
        {
        }
    }
}
