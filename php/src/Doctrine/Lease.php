<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Driver\Connection;
use Doctrine\DBAL\Driver\Exception;

/** A connection that is somebody's until it is given back. Who forgets it has it dropped. */
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
     * Does something with it, and drops it when that ends in the middle.
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
            // The database has said no to a statement, or is not there: it is asked before the next one.
            $isDone = true;
            $this->giveBack(true, isDoubtful: true);
            throw $refused;
        } finally {
            // A task that is cancelled comes by here without an exception.
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
