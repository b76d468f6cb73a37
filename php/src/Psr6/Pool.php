<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr6;

use Psr\Cache\CacheItemInterface;
use Psr\Cache\CacheItemPoolInterface;
use Samovar\Cache;

/**
 * PSR-6 adapter for a Samovar\Cache. All workers share its values. In Symfony, set it as the
 * provider of cache.adapter.psr6.
 *
 * Deferred items are saved immediately: a delay would gain nothing, and the items could be lost
 * when the worker ends. Parameters have no types, to be compatible with versions 1 to 3 of the
 * interface.
 */
final class Pool implements CacheItemPoolInterface
{
    /** Default value that marks a cache miss. */
    private object $nothing;

    public function __construct(private Cache $cache)
    {
        $this->nothing = new \stdClass();
    }

    /** Opens the cache of that name. For containers that create services with a factory. */
    public static function named(string $name, int $bytes = 4194304): self
    {
        return new self(new Cache($name, $bytes));
    }

    public function getItem($key): CacheItemInterface
    {
        $found = $this->cache->get(self::key($key), $this->nothing);
        $is_hit = $found !== $this->nothing;

        return new Item($key, $is_hit ? $found : null, $is_hit);
    }

    /** @return array<string, CacheItemInterface> */
    public function getItems(array $keys = []): iterable
    {
        $items = [];
        foreach ($keys as $key) {
            $items[$key] = $this->getItem($key);
        }

        return $items;
    }

    public function hasItem($key): bool
    {
        return $this->getItem($key)->isHit();
    }

    public function clear(): bool
    {
        $this->cache->clear();

        return true;
    }

    public function deleteItem($key): bool
    {
        $this->cache->delete(self::key($key));

        return true;
    }

    public function deleteItems(array $keys): bool
    {
        // Checks all keys first, so that an invalid key deletes nothing.
        foreach (array_map(self::key(...), $keys) as $key) {
            $this->cache->delete($key);
        }

        return true;
    }

    public function save(CacheItemInterface $item): bool
    {
        if (!$item instanceof Item) {
            throw new InvalidArgument('cannot save an item of another pool: ' . $item::class);
        }
        $left = $item->left();
        if ($left !== null && $left <= 0) {
            return $this->deleteItem($item->getKey());
        }

        return $this->cache->set($item->getKey(), $item->get(), $left);
    }

    public function saveDeferred(CacheItemInterface $item): bool
    {
        return $this->save($item);
    }

    public function commit(): bool
    {
        return true;
    }

    private static function key(mixed $key): string
    {
        $wrong = Keys::wrong($key);

        return $wrong === null ? $key : throw new InvalidArgument($wrong);
    }
}
