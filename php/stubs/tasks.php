<?php

/**
 * IDE stubs: several things of one request at once. Add this file to your IDE's include path; it is never loaded at run time.
 *
 * docs/guide/parallel.md explains it with examples. check.php, beside this file, compares it with a running server.
 */

declare(strict_types=1);

namespace Samovar {
    /**
     * Runs all of $tasks at once and returns what they return, under their keys.
     *
     * "At once": wherever one of them waits (for a database, a connection, a timer, a lock: any blocking call of any
     * extension), the others go on. What they compute, they compute one after another.
     *
     * An exception that leaves one of them cancels the others and is thrown here, when they have ended.
     *
     * @template K of array-key
     * @template T
     * @param array<K, callable(): T> $tasks
     * @param float|null $timeout seconds; then those that have not ended are cancelled
     *
     * @return array<K, T>
     *
     * @throws TimeoutException when $timeout is over
     * @throws \Error when more than limits.tasks_max are in flight, or where nothing can be waited for
     */
    function parallel(array $tasks, ?float $timeout = null): array
    {
    }

    /**
     * Begins $work, which runs to its first wait before this returns, and goes on whenever the caller waits.
     *
     * What has not ended when the script ends is cancelled.
     *
     * @throws \Error when more than limits.tasks_max are in flight, or where nothing can begin
     */
    function async(callable $work): Task
    {
    }

    /**
     * What the first of $tasks returns that returns at all; the others are cancelled. When exceptions leave all of them,
     * that of the first in $tasks is thrown.
     *
     * @template T
     * @param non-empty-array<callable(): T> $tasks
     *
     * @return T
     *
     * @throws TimeoutException when $timeout, in seconds, is over
     * @throws \ValueError when there are none
     */
    function first(array $tasks, ?float $timeout = null): mixed
    {
    }

    /**
     * Waits for so many seconds, in which other tasks go on. 0: they have their turn.
     *
     * @throws \ValueError when $seconds is negative or no number
     */
    function delay(float $seconds): void
    {
    }

    /** Code that was begun by async(). */
    final class Task
    {
        private function __construct()
        {
        }

        /** The task whose code this is; null in code that is none's. */
        public static function current(): ?Task
        {
        }

        /**
         * What it returns, when it has; an exception that has left it is thrown.
         *
         * @param float|null $timeout seconds; the task itself goes on after it
         *
         * @throws TimeoutException when $timeout is over
         * @throws CancelledException when it was cancelled
         */
        public function await(?float $timeout = null): mixed
        {
        }

        /**
         * Ends it where it waits: its `finally` blocks run, its `catch` blocks do not. A connection on which it waits
         * for an answer is shut down. Does nothing when it has ended.
         */
        public function cancel(): void
        {
        }

        public function isDone(): bool
        {
        }
    }

    /**
     * Values that one task gives to another, in the order in which they were sent.
     */
    final class Channel
    {
        /**
         * @param int $capacity values that wait in it; 0: who sends waits until somebody receives
         * @throws \ValueError when $capacity is negative or above 1000000
         */
        public function __construct(int $capacity = 0)
        {
        }

        /**
         * Waits while it is full.
         *
         * @throws TimeoutException when $timeout, in seconds, is over
         * @throws \Error when it is closed
         * @throws \ValueError when $value is null, which receive() says of a closed one
         */
        public function send(mixed $value, ?float $timeout = null): void
        {
        }

        /**
         * Waits for a value; null: it is closed, and all that was sent was received.
         *
         * @throws TimeoutException when $timeout, in seconds, is over
         */
        public function receive(?float $timeout = null): mixed
        {
        }

        /** No more is sent. Does nothing when it is closed. */
        public function close(): void
        {
        }
    }

    /**
     * Connections, or other objects, of which each is used by one task at a time.
     *
     * They are made when they are needed. In a resident application a pool that is made at the boot lives on.
     */
    final class Pool
    {
        /**
         * @param callable(): mixed $make makes one
         * @param int $size how many there are at most
         * @param int $maxUses after which one is replaced; 0: never
         * @param float $idle seconds; one that was idle for longer is replaced
         * @param (callable(mixed): mixed)|null $check asked before one that was idle is used again: false, or an
         *     exception, replaces it. null: PDO, mysqli, Redis, Memcached, PostgreSQL connections and streams are asked
         *     when they were idle for a second
         * @param float $wait seconds for which use() waits for a free one
         *
         * @throws \ValueError when a number means nothing
         */
        public function __construct(callable $make, int $size = 8, int $maxUses = 0, float $idle = 60, ?callable $check = null, float $wait = 5)
        {
        }

        /**
         * Calls $work with one that nobody else uses meanwhile, and returns what it returns. When an exception leaves
         * $work, or its task is cancelled, that one is dropped: what state it is in, nobody knows.
         *
         * @param callable(mixed): mixed $work
         *
         * @throws TimeoutException when none is free in time
         */
        public function use(callable $work): mixed
        {
        }

        /**
         * One that nobody else uses until it is given back: for work that does not fit into a function, such as a
         * transaction. One that is never given back is never used again.
         *
         * @throws TimeoutException when none is free in time
         */
        public function take(): mixed
        {
        }

        /**
         * Gives back what take() has returned, or has it dropped: false, when nobody knows what state it is in.
         *
         * @throws \ValueError when it is not one that is taken
         */
        public function giveBack(mixed $object, bool $sound = true): void
        {
        }

        /**
         * How it is.
         *
         * @return array{size: int, idle: int, used: int, made: int}
         */
        public function stats(): array
        {
        }
    }

    /** Something was not there in the time that was given. */
    class TimeoutException extends \RuntimeException
    {
    }

    /** The task that was awaited was cancelled. */
    class CancelledException extends \RuntimeException
    {
    }
}
