<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Driver\Connection;

/** A transaction: it keeps a connection, which is dropped when this is forgotten before its end. */
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
     * Ends it. After an exception nobody knows what state the connection is in.
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

    /** Null while it begins. */
    public function connection(): ?Connection
    {
        return $this->lease?->connection;
    }
}
