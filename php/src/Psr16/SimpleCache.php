<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr16;

use Psr\SimpleCache\CacheInterface;
use Samovar\Cache;
use Samovar\Runtime\Psr6\Keys;

/**
 * PSR-16 adapter for a Samovar\Cache. All workers share its values.
 *
 * Parameters have no types, to be compatible with versions 1 to 3 of the interface.
 */
final class SimpleCache implements CacheInterface
{
    /** Default value that marks a cache miss. */
    private object $nothing;

    public function __construct(private Cache $cache)
    {
        $this->nothing = new \stdClass();
    }

    public function get($key, $default = null): mixed
    {
        return $this->cache->get(self::key($key), $default);
    }

    public function set($key, $value, $ttl = null): bool
    {
        self::key($key);
        $seconds = self::seconds($ttl);
        if ($seconds === null || $seconds > 0) {
            return $this->cache->set($key, $value, $seconds);
        }
        $this->cache->delete($key);

        return true;
    }

    public function delete($key): bool
    {
        $this->cache->delete(self::key($key));

        return true;
    }

    public function clear(): bool
    {
        $this->cache->clear();

        return true;
    }

    /** @return array<string, mixed> */
    public function getMultiple($keys, $default = null): iterable
    {
        $found = [];
        foreach (self::all($keys) as $key) {
            $found[$key] = $this->get($key, $default);
        }

        return $found;
    }

    public function setMultiple($values, $ttl = null): bool
    {
        $is_stored = true;
        $pairs = [];
        foreach (self::all($values) as $key => $value) {
            // PHP converts numeric array keys to int.
            $pairs[] = [self::key(\is_int($key) ? (string) $key : $key), $value];
        }
        foreach ($pairs as [$key, $value]) {
            $is_stored = $this->set($key, $value, $ttl) && $is_stored;
        }

        return $is_stored;
    }

    public function deleteMultiple($keys): bool
    {
        // Checks all keys first, so that an invalid key deletes nothing.
        foreach (array_map(self::key(...), [...self::all($keys)]) as $key) {
            $this->cache->delete($key);
        }

        return true;
    }

    public function has($key): bool
    {
        return $this->cache->get(self::key($key), $this->nothing) !== $this->nothing;
    }

    private static function key(mixed $key): string
    {
        $wrong = Keys::wrong($key);

        return $wrong === null ? $key : throw new InvalidArgument($wrong);
    }

    private static function all(mixed $several): iterable
    {
        return is_iterable($several)
            ? $several
            : throw new InvalidArgument(
                'keys and values must be an array or a Traversable, not ' . get_debug_type($several),
            );
    }

    private static function seconds(mixed $ttl): ?float
    {
        return $ttl === null || \is_int($ttl) || $ttl instanceof \DateInterval
            ? Keys::seconds($ttl)
            : throw new InvalidArgument(
                'a time to live must be an int, a DateInterval or null, not ' . get_debug_type($ttl),
            );
    }
}
