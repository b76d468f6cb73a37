<?php

/**
 * IDE stubs for concurrent tasks within one request. Add this file to your IDE's include path. It
 * is never loaded at run time.
 *
 * docs/guide/parallel.md shows examples. check.php in this folder compares the stubs with a running
 * server.
 */

declare(strict_types=1);

namespace Samovar {
    /**
     * Runs all $tasks concurrently and returns their results under the same keys.
     *
     * While one task waits, the others continue. This applies to any blocking call of any
     * extension, such as a database query, a connection, a timer or a lock. CPU work is not
     * parallel: one task computes at a time.
     *
     * An exception that leaves a task cancels the other tasks. parallel() throws it after they have
     * ended.
     *
     * @template K of array-key
     * @template T
     * @param array<K, callable(): T> $tasks
     * @param float|null $timeout seconds after which unfinished tasks are cancelled
     *
     * @return array<K, T>
     *
     * @throws TimeoutException when $timeout expires
     * @throws \Error when more than limits.tasks_max tasks are in flight, or where waiting is not
     * possible
     */
    function parallel(array $tasks, ?float $timeout = null): array
    {
    }

    /**
     * Starts $work as a task. It runs to its first wait before async() returns, and continues
     * whenever the caller waits.
     *
     * A task that has not ended when the script ends is cancelled.
     *
     * @throws \Error when more than limits.tasks_max tasks are in flight, or where no task can
     * start
     */
    function async(callable $work): Task
    {
    }

    /**
     * Runs all $tasks concurrently and returns the result of the first one that returns. The others
     * are cancelled. When every task throws, the exception of the first task in $tasks is thrown.
     *
     * @template T
     * @param non-empty-array<callable(): T> $tasks
     *
     * @return T
     *
     * @throws TimeoutException when $timeout, in seconds, expires
     * @throws \ValueError when $tasks is empty
     */
    function first(array $tasks, ?float $timeout = null): mixed
    {
    }

    /**
     * Waits for $seconds while other tasks continue. 0 only lets other tasks run.
     *
     * @throws \ValueError when $seconds is negative or not a number
     */
    function delay(float $seconds): void
    {
    }

    /** A task that async() started. */
    final class Task
    {
        private function __construct()
        {
        }

        /** Returns the task that is running, or null outside a task. */
        public static function current(): ?Task
        {
        }

        /**
         * Waits for the task to end and returns its result. An exception that left the task is
         * thrown here.
         *
         * @param float|null $timeout seconds; the task continues after a timeout
         *
         * @throws TimeoutException when $timeout expires
         * @throws CancelledException when the task was cancelled
         */
        public function await(?float $timeout = null): mixed
        {
        }

        /**
         * Ends the task at the point where it waits. Its `finally` blocks run, its `catch` blocks
         * do not. If it waits for a reply on a connection, that connection is shut down. Does
         * nothing when the task has ended.
         */
        public function cancel(): void
        {
        }

        public function isDone(): bool
        {
        }
    }

    /** A queue of values between tasks, in the order in which they were sent. */
    final class Channel
    {
        /**
         * @param int $capacity values that the channel buffers; with 0, a sender waits until a
         * receiver takes the value
         * @throws \ValueError when $capacity is negative or above 1000000
         */
        public function __construct(int $capacity = 0)
        {
        }

        /**
         * Sends a value. Waits while the channel is full.
         *
         * @throws TimeoutException when $timeout, in seconds, expires
         * @throws \Error when the channel is closed
         * @throws \ValueError when $value is null, because receive() returns null for a closed
         * channel
         */
        public function send(mixed $value, ?float $timeout = null): void
        {
        }

        /**
         * Waits for a value and returns it. Returns null when the channel is closed and empty.
         *
         * @throws TimeoutException when $timeout, in seconds, expires
         */
        public function receive(?float $timeout = null): mixed
        {
        }

        /** Closes the channel for sending. Does nothing when it is already closed. */
        public function close(): void
        {
        }
    }

    /**
     * A pool of connections or other objects. One task at a time uses each object.
     *
     * Objects are created on demand. In a resident application, a pool that is created during the
     * boot lives for the lifetime of the worker.
     */
    final class Pool
    {
        /**
         * @param callable(): mixed $make creates an object
         * @param int $size maximum number of objects
         * @param int $maxUses uses after which an object is replaced; 0 means no limit
         * @param float $idle seconds; an object that was idle for longer is replaced
         * @param (callable(mixed): mixed)|null $check called before an idle object is used again;
         * false or an exception replaces the object. With null, the pool checks PDO, mysqli, Redis,
         * Memcached and PostgreSQL connections that were idle for a second, and streams each time
         * @param float $wait seconds for which use() and take() wait for a free object
         *
         * @throws \ValueError when a number is out of range
         */
        public function __construct(callable $make, int $size = 8, int $maxUses = 0, float $idle = 60, ?callable $check = null, float $wait = 5)
        {
        }

        /**
         * Calls $work with an object that no other task uses meanwhile, and returns the result of
         * $work. When an exception leaves $work, or its task is cancelled, the object is dropped
         * because its state is unknown.
         *
         * @param callable(mixed): mixed $work
         *
         * @throws TimeoutException when no object is free in time
         */
        public function use(callable $work): mixed
        {
        }

        /**
         * Returns an object that no other task uses until giveBack() is called. Use it for work
         * that does not fit into one function, such as a transaction. An object that is never given
         * back is never used again.
         *
         * @throws TimeoutException when no object is free in time
         */
        public function take(): mixed
        {
        }

        /**
         * Gives back an object that take() returned. Pass false as $sound to drop it, when its
         * state is unknown.
         *
         * @throws \ValueError when $object is not in use
         */
        public function giveBack(mixed $object, bool $sound = true): void
        {
        }

        /**
         * Returns the pool's size and counts of objects: idle, used, and made so far.
         *
         * @return array{size: int, idle: int, used: int, made: int}
         */
        public function stats(): array
        {
        }
    }

    /** Thrown when an operation did not complete within its timeout. */
    class TimeoutException extends \RuntimeException
    {
    }

    /** Thrown by await() when the task was cancelled. */
    class CancelledException extends \RuntimeException
    {
    }
}
