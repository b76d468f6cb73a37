<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Driver\Connection;
use Doctrine\DBAL\Driver\Exception;
use Doctrine\DBAL\Driver\Result;
use Doctrine\DBAL\Driver\ServerInfoAwareConnection;
use Doctrine\DBAL\Driver\Statement;
use Doctrine\DBAL\ParameterType;

/**
 * The driver connection that Doctrine sees. Each statement uses one of the pool's connections, and
 * all statements of a transaction use the same one.
 */
final class PooledConnection implements ServerInfoAwareConnection
{
    /**
     * Statements that change the state of a connection, while the next statement may use another
     * one.
     */
    private const STAYS =
        '/^\s*(?:BEGIN|START\s+TRANSACTION|LOCK\s+TABLES?|SET\s+(?:SESSION\s+|@@(?:SESSION\.)?)?AUTOCOMMIT|LISTEN)\b/i';
    private const INSERTS = '/^\s*(?:INSERT|REPLACE)\b/i';

    /** @var \WeakMap<object, Transaction> at most one, by its task, which it does not outlive */
    private \WeakMap $transactions;
    /** @var \WeakMap<object, int|string> last insert ID of each task */
    private \WeakMap $inserted;

    public function __construct(private readonly ConnectionPool $pool, private readonly bool $tellsIds)
    {
        $this->transactions = new \WeakMap();
        $this->inserted = new \WeakMap();
    }

    public function prepare(string $sql): Statement
    {
        return new PooledStatement($this, $sql);
    }

    public function query(string $sql): Result
    {
        return $this->result($sql, static fn (Connection $connection): array => [$connection->query($sql), null]);
    }

    public function exec(string $sql): int
    {
        $mine = $this->mine();
        if ($mine !== null) {
            return $mine->exec($sql);
        }
        $lease = $this->lease($sql);
        $exec = static fn (Connection $connection): int => $connection->exec($sql);
        $count = $lease->with(fn (Connection $connection): int => $this->noting($sql, $connection, $exec));
        $lease->giveBack();

        return $count;
    }

    /**
     * Executes a statement.
     *
     * @param callable(Connection): array{Result, ?Statement} $execute
     */
    public function result(string $sql, callable $execute): Result
    {
        $mine = $this->mine();
        if ($mine !== null) {
            return $execute($mine)[0];
        }
        $lease = $this->lease($sql);
        [$result, $statement] =
            $lease->with(fn (Connection $connection): array => $this->noting($sql, $connection, $execute));

        return new PooledResult($result, $statement, $lease);
    }

    public function quote($value, $type = ParameterType::STRING)
    {
        return $this->ask(static fn (Connection $connection): mixed => $connection->quote($value, $type));
    }

    public function getServerVersion()
    {
        return $this->ask(static fn (ServerInfoAwareConnection $connection): mixed => $connection->getServerVersion());
    }

    public function lastInsertId($name = null)
    {
        $mine = $this->mine();
        if ($mine !== null) {
            return $mine->lastInsertId($name);
        }
        if (!$this->tellsIds) {
            throw new Refused('The connection of the last insert is back in the pool. Insert within a transaction, or '
                . 'with RETURNING');
        }

        return $this->inserted[$this->task()] ?? throw new Refused('This task has inserted no row with a generated ID');
    }

    public function beginTransaction()
    {
        if ($this->mine() !== null) {
            throw new Refused('A transaction is already active');
        }
        // Set before anything waits, so that other tasks see it.
        $transaction = $this->transactions[$this->task()] = new Transaction();
        $isBegun = false;
        try {
            $begun = $transaction->begin($this->pool);
            $isBegun = true;

            return $begun;
        } finally {
            if (!$isBegun) {
                unset($this->transactions[$this->task()]);
            }
        }
    }

    public function commit()
    {
        return $this->end(static fn (Connection $connection): mixed => $connection->commit());
    }

    public function rollBack()
    {
        return $this->end(static fn (Connection $connection): mixed => $connection->rollBack());
    }

    /** Always throws, because there are several native connections. */
    public function getNativeConnection(): never
    {
        throw new Refused('A pool has no single native connection. Use a connection without '
            . 'Samovar\Runtime\Doctrine\PoolMiddleware');
    }

    /** Takes a connection for one statement that leaves no state on it. */
    private function lease(string $sql): Lease
    {
        if (preg_match(self::STAYS, $sql) === 1) {
            $begin = strtoupper(trim(substr($sql, 0, 20)));
            throw new Refused(
                "Statements use different connections of a pool: instead of $begin, call "
                . 'beginTransaction() or transactional(), or use a connection without a pool',
            );
        }

        return new Lease($this->pool);
    }

    /** Calls $work and stores the last insert ID. */
    private function noting(string $sql, Connection $connection, callable $work): mixed
    {
        $result = $work($connection);
        if ($this->tellsIds && preg_match(self::INSERTS, $sql) === 1) {
            try {
                $this->inserted[$this->task()] = $connection->lastInsertId();
            } catch (Exception) {
                unset($this->inserted[$this->task()]); // A table without numbers.
            }
        }

        return $result;
    }

    /** Runs a query that any connection can answer. */
    private function ask(callable $question): mixed
    {
        $kept = ($this->transactions[$this->task()] ?? null)?->connection();
        if ($kept !== null) {
            return $question($kept);
        }
        $lease = new Lease($this->pool);
        $answer = $lease->with($question);
        $lease->giveBack();

        return $answer;
    }

    private function end(callable $how): mixed
    {
        if ($this->mine() === null) {
            throw new Refused('No transaction is active');
        }
        $transaction = $this->transactions[$this->task()];
        unset($this->transactions[$this->task()]);

        return $transaction->end($how);
    }

    /** Returns the connection of this task's transaction. */
    private function mine(): ?Connection
    {
        foreach ($this->transactions as $task => $transaction) {
            if ($task === $this->task()) {
                return $transaction->connection();
            }
            if (!Asker::isOver($task)) {
                throw Refused::anothersTransaction();
            }
            unset($this->transactions[$task]);
        }

        return null;
    }

    private function task(): object
    {
        return Asker::now() ?? $this;
    }
}
