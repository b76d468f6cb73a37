<?php

/**
 * IDE stubs for the functions and classes of the memory that all workers share. samovar.php
 * explains how to use the stubs.
 */

declare(strict_types=1);

namespace Samovar;

/**
 * Publishes a value under a name, for all workers to read with published(). It replaces an earlier
 * value of that name. null removes the value. Published values survive worker restarts and reloads,
 * but not a restart of the server.
 *
 * A request that has already read a published value keeps the old values. A request that reads its
 * first published value after this call gets the new one.
 *
 * @param null|bool|int|float|string|array<mixed> $value arrays contain only these types, and no
 * references
 *
 * @throws \TypeError when the value contains an object, a resource or a reference; the message says
 * where
 * @throws \ValueError when the value is too large (shared.published_value_bytes_max) or too deeply
 * nested
 * @throws \RuntimeException when there is no room (shared.published_bytes_max,
 * shared.published_names_max)
 */
function publish(string $name, mixed $value): void
{
}

/**
 * Returns a published value, or null when there is none of that name. The value is never copied,
 * even when it is large. Changing a returned array makes a private copy, as with any shared PHP
 * array.
 *
 * A request sees the values that were published when it first called published(), and the values
 * that it publishes itself.
 */
function published(string $name): mixed
{
}

/**
 * A counter that all workers share. It survives worker restarts and reloads, but not a restart of
 * the server.
 *
 * It is a 64-bit integer without overflow check: after the largest integer it continues with the
 * smallest.
 */
final class Counter
{
    /**
     * Opens the counter of that name, or creates it with the value 0.
     *
     * @throws \ValueError when $name is empty or longer than 256 bytes
     */
    public function __construct(string $name)
    {
    }

    public function get(): int
    {
    }

    /** Sets the counter. Returns the old value. */
    public function set(int $value): int
    {
    }

    /** Adds $by. Returns the new value. */
    public function incr(int $by = 1): int
    {
    }

    public function decr(int $by = 1): int
    {
    }

    /** Sets the counter to $value if it equals $expected. Returns whether it did. */
    public function compareAndSet(int $expected, int $value): bool
    {
    }
}

/**
 * A table with fixed columns that all workers share. It survives worker restarts and reloads, but
 * not a restart of the server.
 *
 * Each operation is atomic, even when its worker is killed. foreach iterates over all rows as key
 * => row. Each row is consistent. Changes by other workers during the loop may or may not be
 * visible.
 *
 * @implements \IteratorAggregate<string, array<string, int|float|string>>
 */
final class Table implements \Countable, \IteratorAggregate
{
    /**
     * Opens the table of that name, or creates it.
     *
     * @param array<string, string> $columns name => "int", "float" or "string(40)", where 40 is the
     * maximum length in bytes
     * @param int $keyBytes maximum length of a key
     *
     * @throws \Error when a table of that name has other rows or columns
     * @throws \ValueError when the definition is not valid
     * @throws \RuntimeException when there is no memory for the table (shared.bytes_max)
     */
    public function __construct(string $name, int $rows, array $columns, int $keyBytes = 64)
    {
    }

    /**
     * Returns a row as an array, or one column of it. Returns null when there is no such row.
     *
     * @throws \ValueError when there is no such column, or the key is too long
     */
    public function get(string $key, ?string $column = null): mixed
    {
    }

    /**
     * Writes columns of a row. It creates the row if needed, with 0 or an empty string in columns
     * that are not in $values.
     *
     * @param array<string, int|float|string> $values
     *
     * @throws \ValueError when there is no such column, or a key or text is too long
     * @throws \TypeError when a value does not have the type of its column
     * @throws \RuntimeException when the table is full
     */
    public function set(string $key, array $values): void
    {
    }

    /** Adds $by to a column, which starts at 0. Returns the new value. */
    public function incr(string $key, string $column, int|float $by = 1): int|float
    {
    }

    /** Subtracts $by from a column, which starts at 0. Returns the new value. */
    public function decr(string $key, string $column, int|float $by = 1): int|float
    {
    }

    /** Writes $value if the row exists and its column equals $expected. Returns whether it did. */
    public function compareAndSet(
        string $key,
        string $column,
        int|float|string $expected,
        int|float|string $value,
    ): bool {
    }

    /** Deletes a row. Returns whether it existed. */
    public function delete(string $key): bool
    {
    }

    public function count(): int
    {
    }

    public function getIterator(): \Iterator
    {
    }
}

/**
 * A cache that all workers share. Strings and numbers are stored directly, all other values
 * serialized.
 *
 * A cache has a fixed size. When it is full, it evicts the values that have not been read for the
 * longest time. It survives worker restarts and reloads, but not a restart of the server. A value
 * with its key can use at most about 1/32 of the cache.
 */
final class Cache
{
    /**
     * Opens the cache of that name, or creates it.
     *
     * @param int $bytes 64 KiB to 8 GiB
     *
     * @throws \Error when a cache of that name has another size
     * @throws \ValueError when the name or size is not valid
     * @throws \RuntimeException when there is no memory for the cache (shared.bytes_max)
     */
    public function __construct(string $name, int $bytes = 4194304)
    {
    }

    /** Returns the value, or $default when there is none. */
    public function get(string $key, mixed $default = null): mixed
    {
    }

    /**
     * Stores a value for $ttl seconds. With null, it is stored until it is evicted. 0 or less
     * deletes it.
     *
     * Returns whether the value is stored. It returns false when the value is too large. The old
     * value is deleted in that case too.
     */
    public function set(string $key, mixed $value, ?float $ttl = null): bool
    {
    }

    /** Stores a value if the key has none. Returns whether it did. */
    public function add(string $key, mixed $value, ?float $ttl = null): bool
    {
    }

    /** Stores a string or integer if the current value equals $expected. Returns whether it did. */
    public function replace(string $key, int|string $expected, int|string $value, ?float $ttl = null): bool
    {
    }

    public function has(string $key): bool
    {
    }

    /** Deletes a value. Returns whether it existed. */
    public function delete(string $key): bool
    {
    }

    public function clear(): void
    {
    }

    /**
     * Adds $by to an integer. Returns the new value. A missing integer starts at 0 and expires
     * after $ttl seconds.
     *
     * @throws \TypeError when the current value is not an integer
     */
    public function increment(string $key, int $by = 1, ?float $ttl = null): int
    {
    }

    /**
     * Returns the value. If there is none, it calls $make and stores the result for $ttl seconds.
     *
     * One request calls $make, and all others wait for its result. For $stale seconds after a value
     * has expired, the others get the expired value instead of waiting. If $make throws, or its
     * request dies, the next waiting request calls it.
     *
     * @param callable(): mixed $make
     */
    public function remember(string $key, ?float $ttl, callable $make, float $stale = 0.0): mixed
    {
    }
}

/**
 * A lock that one request at a time holds, across all workers.
 *
 * It is released by release(), when the Lock object that acquired it is destroyed, at the end of
 * the request, and when the worker dies. It never outlives its request.
 */
final class Lock
{
    /** @throws \ValueError when $name is empty or longer than 256 bytes */
    public function __construct(string $name)
    {
    }

    /**
     * Acquires the lock, waiting at most $timeout seconds. 0 does not wait, and the maximum is one
     * day. Returns whether this request holds the lock.
     *
     * @throws \Error when this request already holds it
     */
    public function acquire(float $timeout = 0.0): bool
    {
    }

    /** Releases the lock. Returns whether this request held it. */
    public function release(): bool
    {
    }

    /** Returns whether this request holds the lock. */
    public function isHeld(): bool
    {
    }

    /**
     * Calls $work while holding the lock, and returns the result of $work.
     *
     * @throws \RuntimeException when the lock was not acquired within $timeout seconds
     */
    public function synchronized(callable $work, float $timeout = 1.0): mixed
    {
    }
}

/**
 * A rate limiter for each key: a token bucket that holds $burst tokens and gains $rate tokens per
 * second.
 *
 * A key is forgotten when its bucket is full again. With more than $keys keys in use, the keys with
 * the fullest buckets are forgotten.
 */
final class RateLimiter
{
    /**
     * Opens the limiter of that name, or creates it.
     *
     * @throws \Error when a limiter of that name has other parameters
     * @throws \ValueError when a parameter is not valid
     * @throws \RuntimeException when there is no memory for the limiter (shared.bytes_max)
     */
    public function __construct(string $name, float $rate, int $burst, int $keys = 1024)
    {
    }

    /** Takes $cost tokens if the bucket holds enough. Returns whether it did. */
    public function allow(string $key = '', int $cost = 1): bool
    {
    }

    /**
     * Returns the seconds until $cost tokens are available, or 0.0 if they are available now. Takes
     * no tokens.
     */
    public function retryAfter(string $key = '', int $cost = 1): float
    {
    }

    /** Returns the number of available tokens. */
    public function remaining(string $key = ''): int
    {
    }
}

/**
 * A circuit breaker for a dependency, based on the calls of all workers.
 *
 * Closed: calls go through. When too many calls fail or are slow, the breaker opens. Open: calls
 * are refused immediately for $pause seconds. Half-open: one call then goes through. If it
 * succeeds, the breaker closes. Otherwise it stays open for another $pause seconds.
 */
final class Breaker
{
    /**
     * Opens the breaker object of that name, or creates it in the closed state.
     *
     * The breaker trips when at least $minimum calls ended in the last $window seconds, and one of
     * two shares was reached: $failures is the share of failed calls, $slow the share of calls that
     * took $slowAfter seconds or more. With $slowAfter 0, no call counts as slow.
     *
     * @throws \Error when a breaker of that name has other parameters
     * @throws \ValueError when a parameter is not valid
     */
    public function __construct(
        string $name,
        float $failures = 0.5,
        float $slow = 1.0,
        float $slowAfter = 0.0,
        int $minimum = 10,
        float $window = 10.0,
        float $pause = 5.0,
    ) {
    }

    /**
     * Calls $call and returns its result. While the breaker is open, it calls $otherwise instead.
     *
     * A call fails when it throws, ends the request with a fatal error, or runs out of time.
     * Exceptions of the classes in $answers count as success, such as "no such order". All
     * exceptions are rethrown.
     *
     * @param list<class-string> $answers
     *
     * @throws BreakerOpenException when the breaker is open and there is no $otherwise
     */
    public function call(callable $call, ?callable $otherwise = null, array $answers = []): mixed
    {
    }

    /**
     * Returns "closed", "open" or "half-open". Half-open means that one trial call is in progress.
     */
    public function state(): string
    {
    }

    /** Closes the breaker and clears its statistics. */
    public function reset(): void
    {
    }
}

/** Thrown when a breaker is open. The call was not made. */
final class BreakerOpenException extends \RuntimeException
{
    /** Seconds to wait before the next attempt. */
    public float $retryAfter = 0.0;
}
