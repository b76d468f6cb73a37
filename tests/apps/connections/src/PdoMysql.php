<?php

declare(strict_types=1);

namespace Connections;

/** PDO's driver for MySQL, with the server's prepared statements or with emulated ones. */
final class PdoMysql extends MysqlServer
{
    private \PDO $pdo;

    /** @var array<string, \PDOStatement> */
    private array $statements = [];

    private int $first = 1;
    private int $second = 2;

    public function __construct(string $database, private readonly bool $emulates)
    {
        parent::__construct($database);
    }

    protected function connect(): void
    {
        $this->pdo = new \PDO("mysql:unix_socket={$this->place};dbname={$this->database}", 'root', '', [
            \PDO::ATTR_EMULATE_PREPARES => $this->emulates,
        ]);
    }

    protected function bind(): void
    {
        $this->prepare('bound', 'SELECT ?, ?');
        $this->statements['bound']->bindParam(1, $this->first, \PDO::PARAM_INT);
        $this->statements['bound']->bindParam(2, $this->second, \PDO::PARAM_INT);
        $this->executeBound(1, 2);
    }

    public function executeBound(int $first, int $second): mixed
    {
        [$this->first, $this->second] = [$first, $second];
        $this->statements['bound']->execute();

        return $this->rows($this->statements['bound']);
    }

    public function error(\Throwable $e): string
    {
        return $e instanceof \PDOException ? 'number ' . ($e->errorInfo[1] ?? $e->getMessage()) : $e->getMessage();
    }

    public function state(): array
    {
        return [$this->pdo->inTransaction(), $this->pdo->getAttribute(\PDO::ATTR_AUTOCOMMIT)];
    }

    private function rows(\PDOStatement $statement): mixed
    {
        $rows = $statement->columnCount() > 0
            ? $statement->fetchAll(\PDO::FETCH_NUM)
            : 'affected ' . $statement->rowCount();
        $statement->closeCursor();

        return $rows;
    }

    public function query(string $sql): mixed
    {
        return $this->rows($this->pdo->query($sql));
    }

    /** Several statements. */
    public function run(string $sql): mixed
    {
        $statement = $this->pdo->query($sql);
        for ($count = 1; $statement->nextRowset(); $count++) {
        }

        return $count;
    }

    public function params(string $sql, array $arguments): mixed
    {
        return $this->executed($this->pdo->prepare($sql), $arguments);
    }

    public function prepare(string $name, string $sql): string
    {
        $this->statements[$name] = $this->pdo->prepare($sql);

        return 'prepared';
    }

    public function execute(string $name, array $arguments): mixed
    {
        return $this->executed($this->statements[$name] ?? throw new \Exception('no such statement'), $arguments);
    }

    private function executed(\PDOStatement $statement, array $arguments): mixed
    {
        foreach ($arguments as $i => $argument) {
            $statement->bindValue($i + 1, $argument, is_int($argument) ? \PDO::PARAM_INT : \PDO::PARAM_STR);
        }
        $statement->execute();

        return $this->rows($statement);
    }

    public function close(string $name): string
    {
        unset($this->statements[$name]);

        return 'closed';
    }

    /** Reads one row of a result and leaves the others. */
    public function half(string $sql): mixed
    {
        $this->pdo->setAttribute(\PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, false);

        return $this->pdo->query($sql)->fetch(\PDO::FETCH_NUM);
    }

    public function begin(): bool
    {
        return $this->pdo->beginTransaction();
    }

    public function commit(): bool
    {
        return $this->pdo->commit();
    }

    public function rollBack(): bool
    {
        return $this->pdo->rollBack();
    }

    public function autocommit(bool $on): bool
    {
        return $this->pdo->setAttribute(\PDO::ATTR_AUTOCOMMIT, (int) $on);
    }

    public function lastId(): mixed
    {
        return $this->pdo->lastInsertId();
    }
}
