<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Cache;

use Illuminate\Cache\Repository;
use PHPUnit\Framework\TestCase;
use Psr\Cache\CacheItemInterface;
use Psr\Cache\InvalidArgumentException;
use Psr\SimpleCache\InvalidArgumentException as SimpleInvalidArgumentException;
use Samovar\Cache;
use Samovar\Runtime\Laravel\CacheStore;
use Samovar\Runtime\Psr16\SimpleCache;
use Samovar\Runtime\Psr6\Pool;
use Symfony\Component\Cache\Adapter\ProxyAdapter;
use Symfony\Contracts\Cache\ItemInterface;

/** Tests the adapters of Samovar\Cache with the polyfilled cache. */
final class SharedCacheTest extends TestCase
{
    private const WRONG_KEYS = ['', 'a{b', 'a}b', 'a(b', 'a)b', 'a/b', 'a\b', 'a@b', 'a:b', 7, null, []];

    private Cache $cache;

    protected function setUp(): void
    {
        $this->cache = new Cache('adapters', 1 << 20);
        $this->cache->clear();
    }

    public function testASimpleCacheGivesBackWhatWasPutIn(): void
    {
        $simple = new SimpleCache($this->cache);
        foreach (['text', '', 0, 1.5, true, false, null, [], ['a' => [1]], new \ArrayObject([1])] as $value) {
            self::assertTrue($simple->set('key', $value));
            self::assertEquals($value, $simple->get('key', 'nothing'));
            self::assertTrue($simple->has('key'), 'also null is a value');
        }
        self::assertTrue($simple->delete('key'));
        self::assertTrue($simple->delete('key'), 'what is not there has been deleted');
        self::assertFalse($simple->has('key'));
        self::assertSame('nothing', $simple->get('key', 'nothing'));
    }

    public function testASimpleCacheForgetsInTime(): void
    {
        $simple = new SimpleCache($this->cache);
        foreach ([0, -1, new \DateInterval('PT0S')] as $ttl) {
            $simple->set('key', 1);
            self::assertTrue($simple->set('key', 2, $ttl));
            self::assertFalse($simple->has('key'));
        }
        foreach ([null, 60, new \DateInterval('P1D')] as $ttl) {
            self::assertTrue($simple->set('key', 2, $ttl));
            self::assertSame(2, $simple->get('key'));
        }
        $this->expectException(SimpleInvalidArgumentException::class);
        $simple->set('key', 1, '60');
    }

    public function testASimpleCacheTakesSeveral(): void
    {
        $simple = new SimpleCache($this->cache);
        $pairs = (static function (): \Generator {
            yield 'a' => 1;
            yield '0' => 2;
        })();
        self::assertTrue($simple->setMultiple($pairs));
        self::assertTrue($simple->setMultiple(['12' => 'a number as a key']));
        $keys = new \ArrayIterator(['a', '0', '12', 'missing']);
        $found = ['a' => 1, '0' => 2, '12' => 'a number as a key', 'missing' => 'none'];
        self::assertSame($found, $simple->getMultiple($keys, 'none'));
        self::assertTrue($simple->deleteMultiple(['a', '0']));
        self::assertFalse($simple->has('a'));
        self::assertTrue($simple->clear());
        self::assertFalse($simple->has('12'));
        $this->expectException(SimpleInvalidArgumentException::class);
        $simple->getMultiple('a');
    }

    public function testWrongKeysAreRefused(): void
    {
        $simple = new SimpleCache($this->cache);
        $pool = new Pool($this->cache);
        $calls = [
            $simple->get(...), $simple->delete(...), $simple->has(...), fn ($key) => $simple->set($key, 1),
            fn ($key) => $simple->getMultiple([$key]), fn ($key) => $simple->deleteMultiple(['fine', $key]),
            $pool->getItem(...), $pool->hasItem(...), $pool->deleteItem(...), fn ($key) => $pool->getItems([$key]),
            fn ($key) => $pool->deleteItems(['fine', $key]),
        ];
        $simple->set('fine', 1);
        $refused = 0;
        foreach ($calls as $call) {
            foreach (self::WRONG_KEYS as $key) {
                try {
                    $call($key);
                    self::fail('accepted: ' . var_export($key, true));
                } catch (InvalidArgumentException | SimpleInvalidArgumentException) {
                    $refused++;
                }
            }
        }
        self::assertSame(\count($calls) * \count(self::WRONG_KEYS), $refused);
        self::assertTrue($simple->has('fine'), 'a wrong key among others deletes nothing');
        self::assertTrue($simple->set(str_repeat('k', 64), 1));
        self::assertTrue($simple->set('A_z.9 ü', 1));
    }

    public function testAPoolGivesBackWhatWasSaved(): void
    {
        $pool = new Pool($this->cache);
        $item = $pool->getItem('key');
        self::assertFalse($item->isHit());
        self::assertNull($item->get());
        self::assertTrue($pool->save($item->set(null)));
        self::assertTrue($pool->getItem('key')->isHit(), 'null is a value');
        self::assertTrue($pool->saveDeferred($pool->getItem('later')->set(['x'])));
        self::assertTrue($pool->commit());
        $items = $pool->getItems(['key', 'later', 'missing']);
        self::assertSame(['key', 'later', 'missing'], array_keys($items));
        self::assertSame(
            [true, true, false],
            array_values(array_map(fn (CacheItemInterface $item): bool => $item->isHit(), $items)),
        );
        self::assertSame(['x'], $items['later']->get());
        self::assertTrue($pool->deleteItems(['key', 'missing']));
        self::assertFalse($pool->hasItem('key'));
        self::assertTrue($pool->clear());
        self::assertFalse($pool->hasItem('later'));
    }

    public function testAPoolForgetsInTime(): void
    {
        $pool = new Pool($this->cache);
        $past = [
            fn (CacheItemInterface $item) => $item->expiresAt(new \DateTime('-1 second')),
            fn (CacheItemInterface $item) => $item->expiresAfter(0),
            fn (CacheItemInterface $item) => $item->expiresAfter(-5),
        ];
        foreach ($past as $expires) {
            $pool->save($pool->getItem('key')->set(1));
            self::assertTrue($pool->save($expires($pool->getItem('key')->set(2))));
            self::assertFalse($pool->hasItem('key'));
        }
        $future = [
            fn (CacheItemInterface $item) => $item->expiresAt(new \DateTimeImmutable('+1 hour')),
            fn (CacheItemInterface $item) => $item->expiresAt(null),
            fn (CacheItemInterface $item) => $item->expiresAfter(new \DateInterval('PT1H')),
            fn (CacheItemInterface $item) => $item->expiresAfter(null),
        ];
        foreach ($future as $expires) {
            $pool->clear();
            self::assertTrue($pool->save($expires($pool->getItem('key')->set(2))));
            self::assertTrue($pool->hasItem('key'));
        }
        $this->expectException(InvalidArgumentException::class);
        $pool->getItem('key')->expiresAfter('soon');
    }

    public function testSymfonyTakesThePool(): void
    {
        $adapter = new ProxyAdapter(Pool::named('adapters', 1 << 20), 'shop');
        $made = 0;
        $make = static function (ItemInterface $item) use (&$made): string {
            $item->expiresAfter(60);

            return 'made ' . ++$made;
        };
        self::assertSame('made 1', $adapter->get('report', $make));
        self::assertSame('made 1', $adapter->get('report', $make));
        $adapter->delete('report');
        self::assertSame('made 2', $adapter->get('report', $make));
    }

    public function testLaravelTakesTheStore(): void
    {
        $repository = new Repository(new CacheStore($this->cache, 'app:'));
        self::assertTrue($repository->put('key', ['x'], 60));
        self::assertSame(['x'], $repository->get('key'));
        self::assertSame(['x'], $this->cache->get('app:key'), 'with its prefix');
        self::assertTrue($repository->add('count', 0, 60));
        self::assertFalse($repository->add('count', 5, 60));
        self::assertSame([3, 2], [$repository->increment('count', 3), $repository->decrement('count')]);
        self::assertSame('made', $repository->remember('made', 60, fn (): string => 'made'));
        self::assertTrue($repository->forever('stays', 1));
        self::assertSame(['key' => ['x'], 'none' => null], $repository->many(['key', 'none']));
        self::assertTrue($repository->putMany(['a' => 1, 'b' => 2], 60));
        self::assertSame(1, $repository->pull('a'));
        self::assertFalse($repository->has('a'));
        self::assertTrue($repository->forget('b'));
        $repository->tags(['people'])->put('ann', 1, 60);
        self::assertSame(1, $repository->tags(['people'])->get('ann'));
        $repository->tags(['people'])->flush();
        self::assertNull($repository->tags(['people'])->get('ann'));
        $lock = $repository->getStore()->lock('import', 60);
        $other = $repository->getStore()->lock('import', 60);
        self::assertSame([true, false], [$lock->get(), $other->get()]);
        self::assertFalse($other->release(), 'it is not its');
        self::assertTrue($lock->release());
        self::assertTrue($other->get());
        self::assertTrue($repository->clear());
        self::assertNull($repository->get('stays'));
    }
}
