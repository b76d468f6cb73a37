<?php

declare(strict_types=1);

namespace Connections;

/** The extension mysqli. */
final class Mysql extends MysqlServer
{
    private \mysqli $link;

    /** @var array<string, \mysqli_stmt> */
    private array $statements = [];

    /** @var array{int, int} */
    private array $bound = [1, 2];

    protected function connect(): void
    {
        $this->link = new \mysqli(null, 'root', '', $this->database, 0, $this->place);
    }

    protected function bind(): void
    {
        $this->prepare('bound', 'SELECT ?, ?');
        $this->statements['bound']->bind_param('ii', $this->bound[0], $this->bound[1]);
        $this->executeBound(1, 2);
    }

    public function executeBound(int $first, int $second): mixed
    {
        [$this->bound[0], $this->bound[1]] = [$first, $second];
        $this->statements['bound']->execute();

        return $this->statements['bound']->get_result()->fetch_all();
    }

    public function error(\Throwable $e): string
    {
        return $e instanceof \mysqli_sql_exception ? 'number ' . $e->getCode() : $e->getMessage();
    }

    public function state(): array
    {
        return [$this->link->character_set_name(), $this->link->warning_count, $this->link->insert_id];
    }

    private function rows(\mysqli_result|bool $result): mixed
    {
        return $result instanceof \mysqli_result ? $result->fetch_all() : 'affected ' . $this->link->affected_rows;
    }

    public function query(string $sql): mixed
    {
        $rows = $this->rows($this->link->query($sql));
        while ($this->link->more_results()) {
            $this->link->next_result();
        }

        return $rows;
    }

    /** Several statements. */
    public function run(string $sql): int
    {
        $this->link->multi_query($sql);
        $count = 0;
        do {
            $this->link->store_result();
            $count++;
        } while ($this->link->more_results() && $this->link->next_result());

        return $count;
    }

    public function params(string $sql, array $arguments): mixed
    {
        return $this->executed($this->link->prepare($sql), $arguments);
    }

    public function prepare(string $name, string $sql): string
    {
        $this->statements[$name] = $this->link->prepare($sql);

        return 'prepared';
    }

    private function named(string $name): \mysqli_stmt
    {
        return $this->statements[$name] ?? throw new \Exception('no such statement');
    }

    public function execute(string $name, array $arguments): mixed
    {
        return $this->executed($this->named($name), $arguments);
    }

    private function executed(\mysqli_stmt $statement, array $arguments): mixed
    {
        $type = static fn ($one) => is_int($one) ? 'i' : (is_float($one) ? 'd' : 's');
        if ($arguments) {
            $statement->bind_param(implode(array_map($type, $arguments)), ...$arguments);
        }
        $statement->execute();
        $result = $statement->get_result();

        return $result ? $result->fetch_all() : 'affected ' . $statement->affected_rows;
    }

    public function close(string $name): string
    {
        $this->named($name)->close();
        unset($this->statements[$name]);

        return 'closed';
    }

    public function reset(string $name): bool
    {
        return $this->named($name)->reset();
    }

    /** Sends data of a parameter. The statement is executed if `$is_executed`. */
    public function longData(string $name, int $index, string $data, bool $is_executed): mixed
    {
        $statement = $this->named($name);
        $none = array_fill(0, $statement->param_count, null);
        $statement->bind_param(str_repeat('b', $statement->param_count), ...$none);
        $statement->send_long_data($index, $data);
        if (!$is_executed) {
            return 'sent';
        }
        $statement->execute();

        return $statement->get_result()->fetch_all();
    }

    /** Executes a statement with a cursor of the server, and fetches one row. */
    public function cursor(string $name, array $arguments): mixed
    {
        $statement = $this->named($name);
        $statement->attr_set(MYSQLI_STMT_ATTR_CURSOR_TYPE, MYSQLI_CURSOR_TYPE_READ_ONLY);
        $statement->execute(array_map(strval(...), $arguments));
        $row = $more = null;
        $statement->bind_result($row, $more);
        $statement->fetch();

        return [$row, $more];
    }

    /** Reads one row of a result and leaves the others. */
    public function half(string $sql): mixed
    {
        return $this->link->query($sql, MYSQLI_USE_RESULT)->fetch_row();
    }

    public function begin(): bool
    {
        return $this->link->begin_transaction();
    }

    public function commit(): bool
    {
        return $this->link->commit();
    }

    public function rollBack(): bool
    {
        return $this->link->rollback();
    }

    public function charset(string $name): bool
    {
        return $this->link->set_charset($name);
    }

    public function autocommit(bool $on): bool
    {
        return $this->link->autocommit($on);
    }

    public function database(string $name): bool
    {
        return $this->link->select_db($name);
    }

    public function changeUser(): bool
    {
        return $this->link->change_user('root', '', $this->database);
    }
}
