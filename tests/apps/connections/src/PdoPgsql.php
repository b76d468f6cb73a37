<?php

declare(strict_types=1);

namespace Connections;

/** PDO's driver for PostgreSQL. */
final class PdoPgsql extends PgsqlServer
{
    private \PDO $pdo;

    /** @var array<string, \PDOStatement> */
    private array $statements = [];

    /** @var array<string, \PDOStatement> The statements of the boot. */
    private array $held = [];

    protected function connect(): void
    {
        $this->pdo = new \PDO("pgsql:host={$this->place};dbname={$this->database}", 'postgres', '');
    }

    /**
     * A request that drops a statement of the boot does not free it below the checkpoint
     * (docs/guide/checkpoint-model.md), so its name remains. It remains on the new connection, too.
     */
    protected function hold(): void
    {
        $this->held = $this->statements;
    }

    public function error(\Throwable $e): string
    {
        return $e instanceof \PDOException ? 'SQLSTATE ' . ($e->errorInfo[0] ?? $e->getMessage()) : $e->getMessage();
    }

    private function rows(\PDOStatement $statement): mixed
    {
        return $statement->columnCount() > 0
            ? $statement->fetchAll(\PDO::FETCH_NUM)
            : 'affected ' . $statement->rowCount();
    }

    private function anonymous(string $sql): string
    {
        return preg_replace('/\$\d+/', '?', $sql);
    }

    public function state(): array
    {
        return [$this->pdo->inTransaction(), $this->pdo->getAttribute(\PDO::ATTR_SERVER_INFO) !== ''];
    }

    public function query(string $sql): mixed
    {
        return $this->rows($this->pdo->query($sql));
    }

    /** Statements of one message of the simple protocol. */
    public function run(string $sql): mixed
    {
        return $this->pdo->exec($sql);
    }

    public function params(string $sql, array $arguments): mixed
    {
        $statement = $this->pdo->prepare($this->anonymous($sql));
        $statement->execute($arguments);

        return $this->rows($statement);
    }

    public function prepare(string $name, string $sql): string
    {
        $this->statements[$name] = $this->pdo->prepare($this->anonymous($sql));

        return 'prepared';
    }

    public function execute(string $name, array $arguments): mixed
    {
        $statement = $this->statements[$name] ?? throw new \Exception('no such statement');
        $statement->execute($arguments);

        return $this->rows($statement);
    }

    public function close(string $name): mixed
    {
        unset($this->statements[$name]);

        return 'closed';
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

    public function notifications(): array
    {
        $all = [];
        while ($one = $this->pdo->pgsqlGetNotify(\PDO::FETCH_ASSOC)) {
            $all[] = [$one['message'], $one['payload']];
        }

        return $all;
    }

    public function copyIn(string $table, array $rows): bool
    {
        return $this->pdo->pgsqlCopyFromArray($table, $rows);
    }

    public function copyOut(string $table): array|false
    {
        return $this->pdo->pgsqlCopyToArray($table);
    }

    public function lastId(): mixed
    {
        return $this->pdo->lastInsertId();
    }
}
