<?php

/**
 * IDE stubs: what Samovar has of the apcu extension, where the setting `compat` asks for it, so that applications that keep
 * values by it run unchanged.
 *
 * Not defined where that extension is loaded. docs/guide/shared-memory.md says what differs. check.php, beside this file,
 * compares it with a running server.
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

    function apcu_clear_cache(): bool
    {
    }

    /** @return array<string, mixed>|false */
    function apcu_cache_info(bool $limited = false): array|false
    {
    }

    /** @return array<string, int>|null */
    function apcu_key_info(string $key): ?array
    {
    }

    /** @return array<string, mixed>|false */
    function apcu_sma_info(bool $limited = false): array|false
    {
    }

    function apcu_enabled(): bool
    {
    }

    /**
     * Stores a value for $ttl seconds, 0: for as long as there is room.
     *
     * @param string|array<string, mixed> $key or keys with their values, of which those are returned that are not stored
     *
     * @return bool|array<string, int>
     */
    function apcu_store($key, mixed $value = null, int $ttl = 0): array|bool
    {
    }

    /**
     * Stores a value if there is none.
     *
     * @param string|array<string, mixed> $key or keys with their values, of which those are returned that are not stored
     *
     * @return bool|array<string, int>
     */
    function apcu_add($key, mixed $value = null, int $ttl = 0): array|bool
    {
    }

    /** @param bool $success whether there is an int, or none at all: it begins at 0 then, for $ttl seconds */
    function apcu_inc(string $key, int $step = 1, &$success = null, int $ttl = 0): int|false
    {
    }

    /** @param bool $success as of apcu_inc() */
    function apcu_dec(string $key, int $step = 1, &$success = null, int $ttl = 0): int|false
    {
    }

    function apcu_cas(string $key, int $old, int $new): bool
    {
    }

    /**
     * @param string|list<string> $key or several: what there is of them is returned
     * @param bool $success
     */
    function apcu_fetch($key, &$success = null): mixed
    {
    }

    /**
     * @param string|list<string> $key or several: those that are there are returned
     *
     * @return bool|array<string, true>
     */
    function apcu_exists($key): array|bool
    {
    }

    /**
     * @param string|list<string>|APCUIterator $key of several, those are returned that were not there
     *
     * @return bool|list<string>
     */
    function apcu_delete($key): array|bool
    {
    }

    /**
     * The value; or what $callback returns for the key, which is stored. One request asks it, the others wait.
     *
     * @param callable(string): mixed $callback
     */
    function apcu_entry(string $key, callable $callback, int $ttl = 0): mixed
    {
    }

    /** @implements \Iterator<string, array<string, mixed>> */
    class APCUIterator implements \Iterator
    {
        /** @param string|list<string>|null $search a pattern of preg_match(), or keys; null: all */
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
