<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Driver\Connection;
use Doctrine\DBAL\Driver\Result;
use Doctrine\DBAL\Driver\Statement;
use Doctrine\DBAL\ParameterType;

/** A statement that is prepared only when it is executed, on the connection that executes it. */
final class PooledStatement implements Statement
{
    /** @var array<int|string, array{mixed, mixed}> values or variables, and their types */
    private array $bound = [];

    public function __construct(private readonly PooledConnection $connection, private readonly string $sql)
    {
    }

    public function bindValue($param, $value, $type = ParameterType::STRING)
    {
        unset($this->bound[$param]);
        $this->bound[$param] = [$value, $type];

        return true;
    }

    public function bindParam($param, &$variable, $type = ParameterType::STRING, $length = null)
    {
        unset($this->bound[$param]);
        $this->bound[$param] = [&$variable, $type];

        return true;
    }

    public function execute($params = null): Result
    {
        return $this->connection->result($this->sql, function (Connection $connection) use ($params): array {
            $statement = $connection->prepare($this->sql);
            foreach ($this->bound as $param => [$value, $type]) {
                $statement->bindValue($param, $value, $type);
            }

            return [$params === null ? $statement->execute() : $statement->execute($params), $statement];
        });
    }
}
