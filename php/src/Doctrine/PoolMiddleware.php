<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Driver;
use Doctrine\DBAL\Driver\Middleware;

/**
 * Connection pool for Doctrine. Each statement uses a pooled connection exclusively, and a
 * transaction keeps one until its end. Concurrent tasks (Samovar\parallel()) can therefore query
 * the database at the same time.
 *
 *     $configuration->setMiddlewares([new PoolMiddleware(size: 8, maxUses: 1000)]);
 *
 * In Symfony, register it as a service. Doctrine's bundle finds it. All connections with the same
 * parameters share one pool, even when they belong to different Doctrine\DBAL\Connection objects.
 *
 * A connection stays in use until its result is read completely, or its transaction ends.
 */
final class PoolMiddleware implements Middleware
{
    /** @var array<string, ConnectionPool> by the connections' parameters */
    private array $pools = [];

    /**
     * @param int $size maximum number of connections per process
     * @param int $maxUses uses after which a connection is replaced; 0 means no limit
     * @param float $idle seconds; a connection that was idle for longer is replaced
     * @param float $wait seconds to wait for a free connection; then \Samovar\TimeoutException is
     * thrown
     */
    public function __construct(
        private readonly int $size = 8,
        private readonly int $maxUses = 1000,
        private readonly float $idle = 60,
        private readonly float $wait = 5,
    ) {
    }

    public function wrap(Driver $driver): Driver
    {
        return new PooledDriver($driver, $this->pool(...));
    }

    /** @return list<array{size: int, idle: int, used: int, made: int}> statistics of each pool */
    public function stats(): array
    {
        return array_map(static fn (ConnectionPool $pool): array => $pool->stats(), array_values($this->pools));
    }

    /** @param array<string, mixed> $params */
    private function pool(array $params, \Closure $connect): ConnectionPool
    {
        // Options may contain objects. Objects are compared by identity.
        $key = md5(serialize($this->comparable($params)));

        return $this->pools[$key]
            ??= new ConnectionPool($connect, $this->size, $this->maxUses, $this->idle, $this->wait);
    }

    private function comparable(mixed $value): mixed
    {
        return match (true) {
            is_array($value) => array_map($this->comparable(...), $value),
            is_object($value) => $value::class . '#' . spl_object_id($value),
            default => $value,
        };
    }
}
