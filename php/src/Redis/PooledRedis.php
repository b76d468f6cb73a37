<?php

declare(strict_types=1);

namespace Samovar\Runtime\Redis;

use Samovar\Pool;

/**
 * Redis with a connection pool. Each command uses a connection exclusively, so concurrent tasks
 * (Samovar\parallel()) can send commands at the same time.
 *
 *     $redis = new PooledRedis(function (): \Redis {
 *         $redis = new \Redis();
 *         $redis->connect('127.0.0.1');
 *
 *         return $redis;
 *     }, size: 8, maxUses: 10_000);
 *     $redis->get('key');
 *
 * For commands that need the same connection (MULTI, WATCH, pipelines), call use().
 *
 * @mixin \Redis
 */
final class PooledRedis
{
    /**
     * Commands that change the state of a connection, while the next command may use another one.
     */
    private const STAYS = [
        'auth', 'close', 'connect', 'discard', 'exec', 'multi', 'open', 'pconnect', 'pipeline', 'popen', 'psubscribe',
        'punsubscribe', 'reset', 'select', 'setoption', 'ssubscribe', 'subscribe', 'sunsubscribe', 'unsubscribe',
        'unwatch', 'watch',
    ];

    private readonly Pool $pool;

    /**
     * @param callable(): \Redis $connect creates a ready connection: authenticated, with its
     * database and options
     * @param int $size maximum number of connections per process
     * @param int $maxUses uses after which a connection is replaced; 0 means no limit
     * @param float $idle seconds; a connection that was idle for longer is replaced
     * @param float $wait seconds to wait for a free connection; then \Samovar\TimeoutException is
     * thrown
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
     * Calls $work with one connection, for a transaction or a pipeline.
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
                throw new \LogicException('A transaction or pipeline is not finished: call exec() or discard()');
            }

            return $result;
        });
    }

    /** @param array<mixed> $arguments */
    public function __call(string $command, array $arguments): mixed
    {
        if (in_array(strtolower($command), self::STAYS, true)) {
            throw new \BadMethodCallException("Commands use different connections: call $command() within use()");
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

    /** @return array{size: int, idle: int, used: int, made: int} statistics of the pool */
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
