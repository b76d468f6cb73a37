<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Driver\Connection;
use Doctrine\DBAL\Driver\Exception;

/**
 * A connection in exclusive use until it is given back. If the lease is destroyed first, the
 * connection is dropped.
 */
final class Lease
{
    public readonly Connection $connection;
    private bool $isTaken = false;

    public function __construct(private readonly ConnectionPool $pool)
    {
        $this->connection = $pool->take();
        $this->isTaken = true;
    }

    public function __destruct()
    {
        $this->giveBack(false);
    }

    /**
     * Calls $work with the connection, and drops the connection if $work does not complete.
     *
     * @template T
     * @param callable(Connection): T $work
     * @return T
     */
    public function with(callable $work): mixed
    {
        $isDone = false;
        try {
            $result = $work($this->connection);
            $isDone = true;

            return $result;
        } catch (Exception $refused) {
            // The database rejected a statement, or is not reachable. The connection is checked
            // before its next use.
            $isDone = true;
            $this->giveBack(true, isDoubtful: true);
            throw $refused;
        } finally {
            // A cancelled task gets here without an exception.
            if (!$isDone) {
                $this->giveBack(false);
            }
        }
    }

    public function giveBack(bool $isSound = true, bool $isDoubtful = false): void
    {
        if ($this->isTaken) {
            $this->isTaken = false;
            $this->pool->giveBack($this->connection, $isSound, $isDoubtful);
        }
    }
}
