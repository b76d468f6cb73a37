<?php

/**
 * IDE stubs for the functions and classes of the apcu extension that Samovar provides with the
 * setting `compat`. Applications that store values with APCu run unchanged.
 *
 * Samovar does not define them where that extension is loaded. docs/guide/shared-memory.md lists
 * the differences. check.php in this folder compares the stubs with a running server.
 */

declare(strict_types=1);

namespace {
    const APC_LIST_ACTIVE = 1;
    const APC_LIST_DELETED = 2;
    const APC_ITER_TYPE = 1;
    const APC_ITER_KEY = 2;
    const APC_ITER_VALUE = 4;
    const APC_ITER_NUM_HITS = 8;
    const APC_ITER_MTIME = 16;
    const APC_ITER_CTIME = 32;
    const APC_ITER_DTIME = 64;
    const APC_ITER_ATIME = 128;
    const APC_ITER_REFCOUNT = 256;
    const APC_ITER_MEM_SIZE = 512;
    const APC_ITER_TTL = 1024;
    const APC_ITER_NONE = 0;
    const APC_ITER_ALL = 4294967295;

    /** Removes all values. */
    function apcu_clear_cache(): bool
    {
    }

    /**
     * Returns statistics of the cache, and a list of its entries unless $limited is true.
     *
     * @return array<string, mixed>|false
     */
    function apcu_cache_info(bool $limited = false): array|false
    {
    }

    /**
     * Returns the times, hits and ttl of an entry, or null when there is none.
     *
     * @return array<string, int>|null
     */
    function apcu_key_info(string $key): ?array
    {
    }

    /**
     * Returns the size of the cache, and the free part of it.
     *
     * @return array<string, mixed>|false
     */
    function apcu_sma_info(bool $limited = false): array|false
    {
    }

    /** Returns whether the functions have a cache to work with. */
    function apcu_enabled(): bool
    {
    }

    /**
     * Stores a value for $ttl seconds. With 0, it is stored until it is evicted.
     *
     * @param string|array<string, mixed> $key a key, or an array of keys and values
     *
     * @return bool|array<string, int> for an array, the keys that were not stored, each with the
     * value -1
     */
    function apcu_store($key, mixed $value = null, int $ttl = 0): array|bool
    {
    }

    /**
     * Stores a value if the key has none.
     *
     * @param string|array<string, mixed> $key a key, or an array of keys and values
     *
     * @return bool|array<string, int> for an array, the keys that were not stored, each with the
     * value -1
     */
    function apcu_add($key, mixed $value = null, int $ttl = 0): array|bool
    {
    }

    /**
     * Adds $step to an integer and returns the new value. A missing integer starts at 0 and expires
     * after $ttl seconds.
     *
     * @param bool $success set to false when the current value is not an integer
     */
    function apcu_inc(string $key, int $step = 1, &$success = null, int $ttl = 0): int|false
    {
    }

    /**
     * Subtracts $step from an integer and returns the new value. A missing integer starts at 0 and
     * expires after $ttl seconds.
     *
     * @param bool $success set to false when the current value is not an integer
     */
    function apcu_dec(string $key, int $step = 1, &$success = null, int $ttl = 0): int|false
    {
    }

    /** Sets an integer to $new if it equals $old. Returns whether it did. */
    function apcu_cas(string $key, int $old, int $new): bool
    {
    }

    /**
     * Returns a value, or false when there is none.
     *
     * @param string|list<string> $key a key, or several: the values found are returned under their
     * keys
     * @param bool $success
     */
    function apcu_fetch($key, &$success = null): mixed
    {
    }

    /**
     * Returns whether there is a value.
     *
     * @param string|list<string> $key a key, or several
     *
     * @return bool|array<string, true> for several keys, the keys that exist
     */
    function apcu_exists($key): array|bool
    {
    }

    /**
     * Deletes values. For one key, returns whether it existed.
     *
     * @param string|list<string>|APCUIterator $key a key, or several
     *
     * @return bool|list<string> for several keys, the keys that did not exist
     */
    function apcu_delete($key): array|bool
    {
    }

    /**
     * Returns the value. If there is none, it calls $callback with the key and stores the result
     * for $ttl seconds. One request calls $callback, and the others wait for its result.
     *
     * @param callable(string): mixed $callback
     */
    function apcu_entry(string $key, callable $callback, int $ttl = 0): mixed
    {
    }

    /**
     * Iterates over the entries of the cache.
     *
     * @implements \Iterator<string, array<string, mixed>>
     */
    class APCUIterator implements \Iterator
    {
        /** @param string|list<string>|null $search preg_match() pattern, or keys; null means all */
        public function __construct(
            $search = null,
            int $format = APC_ITER_ALL,
            int $chunk_size = 0,
            int $list = APC_LIST_ACTIVE,
        ) {
        }

        public function rewind(): void
        {
        }

        public function next(): void
        {
        }

        public function valid(): bool
        {
        }

        public function key(): string|int
        {
        }

        public function current(): mixed
        {
        }

        public function getTotalHits(): int
        {
        }

        public function getTotalSize(): int
        {
        }

        public function getTotalCount(): int
        {
        }
    }
}
