<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Driver;
use Doctrine\DBAL\Driver\Connection;
use Doctrine\DBAL\Driver\Middleware\AbstractDriverMiddleware;

/** A driver that connects only when a pool needs a connection. */
final class PooledDriver extends AbstractDriverMiddleware
{
    /** Extensions that know the last insert ID without a query. */
    private const TELLS_IDS = ['mysqli', 'pdo_mysql', 'pdo_sqlite', 'sqlite3'];

    /** @param \Closure(array<string, mixed>, \Closure): ConnectionPool $pool */
    public function __construct(Driver $driver, private readonly \Closure $pool)
    {
        parent::__construct($driver);
    }

    public function connect(
        #[\SensitiveParameter]
        array $params,
    ): Connection {
        $pool = ($this->pool)($params, fn (): Connection => parent::connect($params));

        return new PooledConnection($pool, in_array($params['driver'] ?? '', self::TELLS_IDS, true));
    }
}
