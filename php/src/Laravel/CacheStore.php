<?php

declare(strict_types=1);

namespace Samovar\Runtime\Laravel;

use Illuminate\Cache\HasCacheLock;
use Illuminate\Cache\RetrievesMultipleKeys;
use Illuminate\Cache\TaggableStore;
use Illuminate\Contracts\Cache\LockProvider;
use Samovar\Cache;

/**
 * A Samovar\Cache as a store of Laravel's cache: the driver "samovar". All workers share its
 * values.
 *
 * Parameters have no types where Laravel's contract has none.
 */
final class CacheStore extends TaggableStore implements LockProvider
{
    use HasCacheLock;
    use RetrievesMultipleKeys;

    public function __construct(private Cache $cache, private string $prefix = '')
    {
    }

    public function get($key): mixed
    {
        return $this->cache->get($this->prefix . $key);
    }

    public function put($key, $value, $seconds): bool
    {
        return $this->cache->set($this->prefix . $key, $value, (float) $seconds);
    }

    /** Laravel builds locks on this: of concurrent callers, only one stores its value. */
    public function add($key, $value, $seconds): bool
    {
        return $this->cache->add($this->prefix . $key, $value, $seconds > 0 ? (float) $seconds : null);
    }

    public function increment($key, $value = 1): int
    {
        return $this->cache->increment($this->prefix . $key, (int) $value);
    }

    public function decrement($key, $value = 1): int
    {
        return $this->increment($key, -$value);
    }

    public function forever($key, $value): bool
    {
        return $this->cache->set($this->prefix . $key, $value);
    }

    public function touch($key, $seconds): bool
    {
        $value = $this->get($key);

        return $value !== null && $this->put($key, $value, $seconds);
    }

    public function forget($key): bool
    {
        return $this->cache->delete($this->prefix . $key);
    }

    public function flush(): bool
    {
        $this->cache->clear();

        return true;
    }

    public function getPrefix(): string
    {
        return $this->prefix;
    }
}
