<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Driver\Connection;
use Samovar\Pool;

/** A pool of driver connections. It checks connections before reuse. */
final class ConnectionPool
{
    /** Idle seconds after which a connection is checked before reuse. */
    private const ASKED_AFTER = 1.0;

    private readonly Pool $pool;
    /**
     * @var \WeakMap<Connection, float> when each was used last; 0: it is to be asked in any case
     */
    private \WeakMap $used;

    /** @param \Closure(): Connection $connect */
    public function __construct(\Closure $connect, int $size, int $maxUses, float $idle, float $wait)
    {
        $this->used = new \WeakMap();
        $check = function (Connection $connection): bool {
            if (microtime(true) - ($this->used[$connection] ?? 0.0) > self::ASKED_AFTER) {
                $connection->query('SELECT 1')->free();
            }

            return true;
        };
        $this->pool = new Pool($connect, $size, $maxUses, $idle, $check, $wait);
    }

    public function take(): Connection
    {
        return $this->pool->take();
    }

    public function giveBack(Connection $connection, bool $isSound, bool $isDoubtful): void
    {
        $this->used[$connection] = $isDoubtful ? 0.0 : microtime(true);
        $this->pool->giveBack($connection, $isSound);
    }

    /** @return array{size: int, idle: int, used: int, made: int} */
    public function stats(): array
    {
        return $this->pool->stats();
    }
}
