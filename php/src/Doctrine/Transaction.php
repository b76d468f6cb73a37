<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Driver\Connection;

/**
 * A transaction. It keeps one connection, which is dropped when this object is destroyed before the
 * transaction's end.
 */
final class Transaction
{
    private ?Lease $lease = null;

    public function begin(ConnectionPool $pool): mixed
    {
        $lease = new Lease($pool);
        $begun = $lease->with(static fn (Connection $connection): mixed => $connection->beginTransaction());
        $this->lease = $lease;

        return $begun;
    }

    /**
     * Ends the transaction. After an exception the connection is dropped, because its state is
     * unknown.
     *
     * @param callable(Connection): mixed $how
     */
    public function end(callable $how): mixed
    {
        [$lease, $this->lease] = [$this->lease, null];
        $done = $how($lease->connection);
        $lease->giveBack();

        return $done;
    }

    /** Returns null while the transaction is starting. */
    public function connection(): ?Connection
    {
        return $this->lease?->connection;
    }
}
