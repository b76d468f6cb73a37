<?php

/**
 * IDE stubs: what Samovar offers to PHP code in the memory that all workers share. samovar.php says more.
 */

declare(strict_types=1);

namespace Samovar;

/**
 * Publishes a value, which all workers read by published(): in place of the one of that name, if there is one. null takes it
 * away. It survives workers and reloads, not a restart of the server.
 *
 * Requests that have read a published value go on with what was there; all that begin to read see this one.
 *
 * @param null|bool|int|float|string|array<mixed> $value arrays of these, without references
 *
 * @throws \TypeError when there is an object, resource or reference in it: the message says where
 * @throws \ValueError when it is too large (shared.published_value_bytes_max) or nested too deep
 * @throws \RuntimeException when there is no room (shared.published_bytes_max, shared.published_names_max)
 */
function publish(string $name, mixed $value): void
{
}

/**
 * A published value, or null when there is none. It is not copied, however large it is: an array that is changed
 * becomes a copy then, as any array does that somebody else has, too.
 *
 * A request sees the values that were published when it first asked for one, and those that it publishes itself.
 */
function published(string $name): mixed
{
}

/**
 * A number that all workers count in. It survives workers and reloads, not a restart of the server.
 *
 * It has 64 bits and no limit: beyond the largest integer it goes on with the smallest.
 */
final class Counter
{
    /**
     * The counter of that name, at 0 if nobody has used it yet.
     * @throws \ValueError when $name has no bytes or more than 256
     */
    public function __construct(string $name)
    {
    }

    public function get(): int
    {
    }

    /** Returns what it said before. */
    public function set(int $value): int
    {
    }

    /** Returns what it says then. */
    public function incr(int $by = 1): int
    {
    }

    public function decr(int $by = 1): int
    {
    }

    /** Sets it to $value if it says $expected; whether it did. */
    public function compareAndSet(int $expected, int $value): bool
    {
    }
}

/**
 * Rows of fixed columns that all workers share. They survive workers and reloads, not a restart of the server.
 *
 * Each operation is done as a whole or not at all, even when its worker is killed. foreach goes over all rows, key =>
 * row: each is whole; what others change meanwhile is seen or not.
 *
 * @implements \IteratorAggregate<string, array<string, int|float|string>>
 */
final class Table implements \Countable, \IteratorAggregate
{
    /**
     * The table of that name, which is made if nobody has used it yet.
     *
     * @param array<string, string> $columns name => "int", "float" or "string(40)", the most bytes
     * @param int $keyBytes the longest key
     *
     * @throws \Error when there is a table of that name with other rows or columns
     * @throws \ValueError when no table can look so
     * @throws \RuntimeException when there is no memory for it (shared.bytes_max)
     */
    public function __construct(string $name, int $rows, array $columns, int $keyBytes = 64)
    {
    }

    /**
     * A row as an array, or one column of it; null when there is no such row.
     *
     * @throws \ValueError when there is no such column, or the key is too long
     */
    public function get(string $key, ?string $column = null): mixed
    {
    }

    /**
     * Writes columns of a row, which is made if it is not there: columns that are not named are 0 or empty then.
     *
     * @param array<string, int|float|string> $values
     *
     * @throws \ValueError when there is no such column, or a key or text is too long
     * @throws \TypeError when a value is not of its column's type
     * @throws \RuntimeException when the table is full
     */
    public function set(string $key, array $values): void
    {
    }

    /** Adds to a column, which begins at 0; returns the sum. */
    public function incr(string $key, string $column, int|float $by = 1): int|float
    {
    }

    /** Subtracts from a column, which begins at 0; returns the difference. */
    public function decr(string $key, string $column, int|float $by = 1): int|float
    {
    }

    /** Writes $value if the row is there and its column holds $expected; whether it did. */
    public function compareAndSet(
        string $key,
        string $column,
        int|float|string $expected,
        int|float|string $value,
    ): bool {
    }

    /** Whether there was such a row. */
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
 * Values that all workers share for a while: strings and numbers as they are, all others serialized.
 *
 * A cache has a fixed size: when it is full, the values that nobody has read for longest make way. It survives workers and
 * reloads, not a restart of the server. A value with its key takes at most about a 32nd of the cache.
 */
final class Cache
{
    /**
     * The cache of that name, which is made if nobody has used it yet.
     *
     * @param int $bytes 64 KiB to 8 GiB
     *
     * @throws \Error when there is a cache of that name of another size
     * @throws \ValueError when no cache can be so
     * @throws \RuntimeException when there is no memory for it (shared.bytes_max)
     */
    public function __construct(string $name, int $bytes = 4194304)
    {
    }

    /** The value, or $default when there is none. */
    public function get(string $key, mixed $default = null): mixed
    {
    }

    /**
     * Stores a value for $ttl seconds (null: for as long as there is room; 0 and less: it is deleted).
     *
     * Whether it is stored: not when it is too large. What was there is gone then, too.
     */
    public function set(string $key, mixed $value, ?float $ttl = null): bool
    {
    }

    /** Stores a value if there is none; whether it did. */
    public function add(string $key, mixed $value, ?float $ttl = null): bool
    {
    }

    /** Stores a string or number if $expected is what is there; whether it did. */
    public function replace(string $key, int|string $expected, int|string $value, ?float $ttl = null): bool
    {
    }

    public function has(string $key): bool
    {
    }

    /** Whether there was such a value. */
    public function delete(string $key): bool
    {
    }

    public function clear(): void
    {
    }

    /**
     * Adds to an integer, which begins at 0 and lives for $ttl seconds then; returns the sum.
     *
     * @throws \TypeError when there is something else
     */
    public function increment(string $key, int $by = 1, ?float $ttl = null): int
    {
    }

    /**
     * The value, or what $make returns, which is stored for $ttl seconds. One request makes it, all others wait for that;
     * or take the value that has ended, for $stale seconds after its end. A maker that dies or throws is followed by
     * the next.
     *
     * @param callable(): mixed $make
     */
    public function remember(string $key, ?float $ttl, callable $make, float $stale = 0.0): mixed
    {
    }
}

/**
 * A lock that one request of all workers can hold.
 *
 * It is let go by release(), when the Lock is destroyed that has acquired it, at the end of the request, and when the
 * worker dies: never later.
 */
final class Lock
{
    /** @throws \ValueError when $name has no bytes or more than 256 */
    public function __construct(string $name)
    {
    }

    /**
     * Waits for the lock for at most $timeout seconds (0: not at all, at most a day); whether this request has it.
     *
     * @throws \Error when this request holds it already
     */
    public function acquire(float $timeout = 0.0): bool
    {
    }

    /** Whether this request has held it. */
    public function release(): bool
    {
    }

    /** Whether this request holds it. */
    public function isHeld(): bool
    {
    }

    /**
     * Calls $work while it holds the lock, and returns what that returns.
     *
     * @throws \RuntimeException when the lock was not to be had in time
     */
    public function synchronized(callable $work, float $timeout = 1.0): mixed
    {
    }
}

/**
 * How often something may happen, for each key: a bucket that holds $burst tokens, into which $rate come each second.
 *
 * A key that is not used any more is forgotten when its bucket is full. Where more than $keys are in use at once, those
 * are forgotten that have been used least.
 */
final class RateLimiter
{
    /**
     * The limiter of that name, which is made if nobody has used it yet.
     *
     * @throws \Error when there is a limiter of that name with other numbers
     * @throws \ValueError when no limiter can be so
     * @throws \RuntimeException when there is no memory for it (shared.bytes_max)
     */
    public function __construct(string $name, float $rate, int $burst, int $keys = 1024)
    {
    }

    /** Takes $cost tokens if there are so many; whether there were. */
    public function allow(string $key = '', int $cost = 1): bool
    {
    }

    /** Seconds until there are $cost tokens; 0.0: now. Takes none. */
    public function retryAfter(string $key = '', int $cost = 1): float
    {
    }

    /** Tokens that there are. */
    public function remaining(string $key = ''): int
    {
    }
}

/**
 * Whether a dependency is called at all. While enough of all workers' calls go well the breaker is closed, and calls go
 * through. When too many fail, or are slow, it opens: calls are refused at once, for $pause seconds. Then one goes
 * through: if that goes well, the breaker is closed again, else it stays open for another $pause seconds.
 */
final class Breaker
{
    /**
     * The breaker of that name, which is made, closed, if nobody has used it yet. It opens when at least $minimum calls
     * ended in the last $window seconds, and a share of $failures of them failed, or one of $slow took $slowAfter seconds or
     * more (0: no call is slow).
     *
     * @throws \Error when there is a breaker of that name with other numbers
     * @throws \ValueError when no breaker can be so
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
     * Calls $call and returns what it returns; or, while the breaker is open, $otherwise instead of it.
     *
     * A call fails that throws, that ends the request by a fatal error or that runs out of time. Exceptions of the classes
     * $answers are answers like others ("there is no such order"). All exceptions are thrown on.
     *
     * @param list<class-string> $answers
     *
     * @throws BreakerOpenException when it is open, and there is no $otherwise
     */
    public function call(callable $call, ?callable $otherwise = null, array $answers = []): mixed
    {
    }

    /** "closed", "open" or "half-open": one call is on its way to see whether all is well again. */
    public function state(): string
    {
    }

    /** Closes the breaker, which has counted nothing then. */
    public function reset(): void
    {
    }
}

/** A breaker is open: the call was not made. */
final class BreakerOpenException extends \RuntimeException
{
    /** Seconds after which it makes sense to try again. */
    public float $retryAfter = 0.0;
}
