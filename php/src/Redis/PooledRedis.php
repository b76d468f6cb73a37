<?php

declare(strict_types=1);

namespace Samovar\Runtime\Redis;

use Samovar\Pool;

/**
 * Redis out of a pool: each command takes a connection that nobody else uses meanwhile, so tasks that run at once
 * (Samovar\parallel()) ask at once.
 *
 *     $redis = new PooledRedis(function (): \Redis {
 *         $redis = new \Redis();
 *         $redis->connect('127.0.0.1');
 *
 *         return $redis;
 *     }, size: 8, maxUses: 10_000);
 *     $redis->get('key');
 *
 * Several commands that belong together (MULTI, WATCH, pipelines) are for use().
 *
 * @mixin \Redis
 */
final class PooledRedis
{
    /** What would stay with a connection that the next command does not go to. */
    private const STAYS = [
        'auth', 'close', 'connect', 'discard', 'exec', 'multi', 'open', 'pconnect', 'pipeline', 'popen', 'psubscribe',
        'punsubscribe', 'reset', 'select', 'setoption', 'ssubscribe', 'subscribe', 'sunsubscribe', 'unsubscribe',
        'unwatch', 'watch',
    ];

    private readonly Pool $pool;

    /**
     * @param callable(): \Redis $connect makes a connection that is ready: authenticated, with its database and options
     * @param int $size connections at most, for each process
     * @param int $maxUses after which one is replaced; 0: never
     * @param float $idle seconds; one that was idle for longer is replaced
     * @param float $wait seconds for which one waits for a free one; then \Samovar\TimeoutException
     */
    public function __construct(
        callable $connect,
        int $size = 8,
        int $maxUses = 10_000,
        float $idle = 60,
        float $wait = 5,
    ) {
        $this->pool = new Pool($connect, $size, $maxUses, $idle, null, $wait);
    }

    /**
     * Does something with one connection: a transaction, a pipeline.
     *
     * @template T
     * @param callable(\Redis): T $work
     * @return T
     */
    public function use(callable $work): mixed
    {
        return $this->pool->use(static function (object $redis) use ($work): mixed {
            $result = $work($redis);
            if ($redis instanceof \Redis && $redis->getMode() !== \Redis::ATOMIC) {
                throw new \LogicException('A transaction or pipeline was begun and not ended: exec() or discard() it');
            }

            return $result;
        });
    }

    /** @param array<mixed> $arguments */
    public function __call(string $command, array $arguments): mixed
    {
        if (in_array(strtolower($command), self::STAYS, true)) {
            throw new \BadMethodCallException("Commands go to different connections: call $command() within use()");
        }

        return $this->pool->use(static fn (object $redis): mixed => $redis->$command(...$arguments));
    }

    /** @return list<string>|false */
    public function scan(?int &$iterator, ?string $pattern = null, int $count = 0): array|false
    {
        return $this->walk('scan', [], $iterator, $pattern, $count);
    }

    /** @return list<string>|false */
    public function sScan(string $key, ?int &$iterator, ?string $pattern = null, int $count = 0): array|false
    {
        return $this->walk('sScan', [$key], $iterator, $pattern, $count);
    }

    /** @return array<string, string>|false */
    public function hScan(string $key, ?int &$iterator, ?string $pattern = null, int $count = 0): array|false
    {
        return $this->walk('hScan', [$key], $iterator, $pattern, $count);
    }

    /** @return array<string, float>|false */
    public function zScan(string $key, ?int &$iterator, ?string $pattern = null, int $count = 0): array|false
    {
        return $this->walk('zScan', [$key], $iterator, $pattern, $count);
    }

    /** @return array{size: int, idle: int, used: int, made: int} how its pool is */
    public function stats(): array
    {
        return $this->pool->stats();
    }

    /** @param list<string> $key */
    private function walk(string $command, array $key, ?int &$iterator, ?string $pattern, int $count): array|false
    {
        $walk = static function (object $redis) use ($command, $key, &$iterator, $pattern, $count): array|false {
            $arguments = [...$key, &$iterator, $pattern, $count];

            return $redis->$command(...$arguments);
        };

        return $this->pool->use($walk);
    }
}
