<?php

declare(strict_types=1);

namespace Samovar;

/**
 * A table with fixed columns under a SAPI other than Samovar. It belongs to this process only. See
 * php/stubs/shared.php.
 *
 * @implements \IteratorAggregate<string, array<string, int|float|string>>
 */
final class Table implements \Countable, \IteratorAggregate
{
    private const NAME_BYTES_MAX = 256;
    private const ROWS_MAX = 1 << 26;
    private const COLUMNS_MAX = 64;
    private const KEY_BYTES_MAX = 1024;

    /** @var array<string, array{definition: string, rows: array<string, array<string,
     * int|float|string>>}> */
    private static array $tables = [];

    /** @var array<string, int> maximum length in bytes of each text column */
    private array $sizes = [];

    /** @param array<string, string> $columns */
    public function __construct(
        private string $name,
        private int $rows,
        private array $columns,
        private int $keyBytes = 64,
    ) {
        self::within(\strlen($name), self::NAME_BYTES_MAX, 'the name of a shared object', 'bytes');
        self::within($rows, self::ROWS_MAX, 'a table', 'rows');
        self::within($keyBytes, self::KEY_BYTES_MAX, 'a key', 'bytes');
        self::within(\count($columns), self::COLUMNS_MAX, 'a table', 'columns');
        foreach ($columns as $column => $type) {
            $this->define($column, $type);
        }
        $definition = "rows=$rows key=$keyBytes " . json_encode($columns);
        self::$tables[$name] ??= ['definition' => $definition, 'rows' => []];
        $found = self::$tables[$name]['definition'];
        if ($found !== $definition) {
            throw new \Error("the table `$name` exists as `$found`, and cannot be `$definition` too");
        }
    }

    private function __clone()
    {
    }

    public function __serialize(): array
    {
        throw new \Exception("Serialization of 'Samovar\\Table' is not allowed");
    }

    public function get(string $key, ?string $column = null): mixed
    {
        $this->checkKey($key);
        if ($column !== null) {
            $this->type($column);
        }
        $row = self::$tables[$this->name]['rows'][$key] ?? null;

        return $column === null || $row === null ? $row : $row[$column];
    }

    /** @param array<string, int|float|string> $values */
    public function set(string $key, array $values): void
    {
        $this->checkKey($key);
        $checked = [];
        foreach ($values as $column => $value) {
            $checked[$column] = $this->checked((string) $column, $value);
        }
        $this->row($key);
        self::$tables[$this->name]['rows'][$key] = array_replace(self::$tables[$this->name]['rows'][$key], $checked);
    }

    public function incr(string $key, string $column, int|float $by = 1): int|float
    {
        $this->checkKey($key);
        $by = $this->checked($column, $by);
        $sum = ($this->get($key, $column) ?? 0) + $by;
        if ($this->type($column) === 'int' && !\is_int($sum)) {
            throw new \RuntimeException("the sum in column `$column` does not fit into an integer");
        }
        $this->set($key, [$column => $sum]);

        return $sum;
    }

    public function decr(string $key, string $column, int|float $by = 1): int|float
    {
        return $this->incr($key, $column, -$by);
    }

    public function compareAndSet(
        string $key,
        string $column,
        int|float|string $expected,
        int|float|string $value,
    ): bool {
        $expected = $this->checked($column, $expected);
        $value = $this->checked($column, $value);
        $is_it = $this->get($key, $column) === $expected;
        if ($is_it) {
            $this->set($key, [$column => $value]);
        }

        return $is_it;
    }

    public function delete(string $key): bool
    {
        $this->checkKey($key);
        $is_there = isset(self::$tables[$this->name]['rows'][$key]);
        unset(self::$tables[$this->name]['rows'][$key]);

        return $is_there;
    }

    public function count(): int
    {
        return \count(self::$tables[$this->name]['rows']);
    }

    public function getIterator(): \Iterator
    {
        foreach (self::$tables[$this->name]['rows'] as $key => $row) {
            yield (string) $key => $row;
        }
    }

    private static function within(int $number, int $max, string $subject, string $unit): void
    {
        if ($number < 1 || $number > $max) {
            throw new \ValueError("$subject has 1 to $max $unit, not $number");
        }
    }

    private function define(mixed $column, mixed $type): void
    {
        if (!\is_string($column) || !\is_string($type)) {
            throw new \ValueError(
                'Samovar\Table::__construct(): Argument #3 ($columns) must be names of columns => '
                . '"int", "float" or "string(40)"',
            );
        }
        if (preg_match('/^\w{1,64}$/D', $column) !== 1) {
            throw new \ValueError("`$column` is not a valid column name");
        }
        if (preg_match('/^string\(([1-9]\d{0,6})\)$/D', $type, $found) === 1) {
            $this->sizes[$column] = (int) $found[1];
        } elseif ($type !== 'int' && $type !== 'float') {
            throw new \ValueError("a column holds `int`, `float` or `string(40)`, not `$type`");
        }
    }

    private function checkKey(string $key): void
    {
        self::within(\strlen($key), $this->keyBytes, "a key of the table `$this->name`", 'bytes');
    }

    private function type(string $column): string
    {
        $type = $this->columns[$column] ?? throw new \ValueError("the table has no column `$column`");

        return isset($this->sizes[$column]) ? 'string' : $type;
    }

    private function checked(string $column, mixed $value): int|float|string
    {
        $type = $this->type($column);
        if ($type === 'float' && \is_int($value)) {
            $value = (float) $value;
        }
        if (get_debug_type($value) !== $type) {
            throw new \TypeError("the column `$column` holds $type, " . get_debug_type($value) . ' given');
        }
        if ($type === 'string' && \strlen($value) > $this->sizes[$column]) {
            throw new \ValueError("the column `$column` holds {$this->sizes[$column]} bytes, not " . \strlen($value));
        }

        return $value;
    }

    /** Adds a missing row. */
    private function row(string $key): void
    {
        if (isset(self::$tables[$this->name]['rows'][$key])) {
            return;
        }
        if (\count(self::$tables[$this->name]['rows']) >= $this->rows) {
            throw new \RuntimeException("the table `$this->name` is full: it has $this->rows rows");
        }
        $row = [];
        foreach (array_keys($this->columns) as $column) {
            $row[$column] = match ($this->type($column)) {
                'int' => 0,
                'float' => 0.0,
                default => '',
            };
        }
        self::$tables[$this->name]['rows'][$key] = $row;
    }
}
