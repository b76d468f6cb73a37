<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Driver\Result;
use Doctrine\DBAL\Driver\Statement;

/** A result that keeps its connection until it is read completely or destroyed. */
final class PooledResult implements Result
{
    private readonly int $columns;
    private int $rows;

    public function __construct(private ?Result $result, private ?Statement $statement, private ?Lease $lease)
    {
        $this->columns = $result->columnCount();
        $this->rows = $result->rowCount();
        if ($this->columns === 0) {
            $this->free();
        }
    }

    public function __destruct()
    {
        $this->free();
    }

    public function fetchNumeric()
    {
        return $this->ends($this->result?->fetchNumeric() ?? false);
    }

    public function fetchAssociative()
    {
        return $this->ends($this->result?->fetchAssociative() ?? false);
    }

    public function fetchOne()
    {
        $row = $this->fetchNumeric();

        return $row === false ? false : $row[0];
    }

    public function fetchAllNumeric(): array
    {
        return $this->all($this->result?->fetchAllNumeric());
    }

    public function fetchAllAssociative(): array
    {
        return $this->all($this->result?->fetchAllAssociative());
    }

    public function fetchFirstColumn(): array
    {
        return $this->all($this->result?->fetchFirstColumn());
    }

    public function rowCount(): int
    {
        return $this->rows;
    }

    public function columnCount(): int
    {
        return $this->columns;
    }

    public function free(): void
    {
        [$lease, $this->lease] = [$this->lease, null];
        if ($lease === null) {
            return;
        }
        // Freeing may send data to the database, so it happens while the connection is still
        // leased.
        $lease->with(function (): void {
            $this->result->free();
            $this->result = $this->statement = null;
        });
        $lease->giveBack();
    }

    private function ends(array|false $row): array|false
    {
        if ($row === false) {
            $this->free();
        }

        return $row;
    }

    private function all(?array $rows): array
    {
        $this->free();

        return $rows ?? [];
    }
}
