<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Driver;
use Doctrine\DBAL\Driver\Middleware;

/**
 * Doctrine's connections out of a pool: each statement takes one that nobody else uses meanwhile, a transaction keeps
 * one to its end. So tasks that run at once (Samovar\parallel()) ask the database at once.
 *
 *     $configuration->setMiddlewares([new PoolMiddleware(size: 8, maxUses: 1000)]);
 *
 * In Symfony it is a service; the bundle finds it. All connections with the same parameters have one pool, whichever
 * Doctrine\DBAL\Connection they belong to.
 *
 * A result that is not read keeps its connection; so does a transaction.
 */
final class PoolMiddleware implements Middleware
{
    /** @var array<string, ConnectionPool> by the connections' parameters */
    private array $pools = [];

    /**
     * @param int $size connections at most, for each process
     * @param int $maxUses after which one is replaced; 0: never
     * @param float $idle seconds; one that was idle for longer is replaced
     * @param float $wait seconds for which one waits for a free one; then \Samovar\TimeoutException
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

    /** @return list<array{size: int, idle: int, used: int, made: int}> how its pools are */
    public function stats(): array
    {
        return array_map(static fn (ConnectionPool $pool): array => $pool->stats(), array_values($this->pools));
    }

    /** @param array<string, mixed> $params */
    private function pool(array $params, \Closure $connect): ConnectionPool
    {
        // Options may hold objects, which are one and the same as long as they live.
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
