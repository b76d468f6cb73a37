<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr6;

use Psr\Cache\CacheItemInterface;
use Psr\Cache\CacheItemPoolInterface;
use Samovar\Cache;

/**
 * A Samovar\Cache as PSR-6 has it: what one worker saves, all find. Symfony takes it as the provider of
 * cache.adapter.psr6.
 *
 * What is deferred is saved at once: nothing is gained by waiting, and a worker's end could lose it. Parameters have no
 * types, so that it fits the interface's versions 1 to 3.
 */
final class Pool implements CacheItemPoolInterface
{
    /** What is found where nothing is. */
    private object $nothing;

    public function __construct(private Cache $cache)
    {
        $this->nothing = new \stdClass();
    }

    /** The cache of that name; for containers whose services are made by a factory. */
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
        // First all of them: a wrong one deletes nothing.
        foreach (array_map(self::key(...), $keys) as $key) {
            $this->cache->delete($key);
        }

        return true;
    }

    public function save(CacheItemInterface $item): bool
    {
        if (!$item instanceof Item) {
            throw new InvalidArgument('an item of another pool cannot be saved: ' . $item::class);
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
