<?php

declare(strict_types=1);

namespace Connections;

/** PDO's driver for SQLite, with a file of the application. */
final class Lite implements Connection
{
    private const SETUP = [
        'CREATE TABLE IF NOT EXISTS cups (n INTEGER PRIMARY KEY AUTOINCREMENT, who TEXT)',
        'CREATE TABLE IF NOT EXISTS flavours (n INTEGER PRIMARY KEY, flavour TEXT)',
        "INSERT OR IGNORE INTO flavours VALUES (1, 'green'), (2, 'black')",
    ];

    private const RESTORE = [
        'DELETE FROM cups', 'DELETE FROM sqlite_sequence', 'DELETE FROM flavours',
        "INSERT INTO flavours VALUES (1, 'green'), (2, 'black')",
    ];

    private const PREPARED = [
        'echo' => ['SELECT ?', ['boot']],
        'insert' => ['INSERT INTO cups (who) VALUES (?)', null],
        'flavour' => ['SELECT flavour FROM flavours WHERE n = ?', [1]],
    ];

    /** A table that does not fit into the cache: a part of it is in a file. */
    private const RICH = [
        'PRAGMA temp_store = FILE',
        'PRAGMA cache_size = 10',
        'PRAGMA temp.cache_size = 2',
        'CREATE TEMP TABLE basket (n INTEGER PRIMARY KEY, item TEXT)',
        "WITH RECURSIVE i (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 300)
            INSERT INTO basket SELECT n, printf('of the boot %0500d', n) FROM i",
        'CREATE TEMP TRIGGER filler AFTER INSERT ON flavours
            BEGIN UPDATE basket SET item = new.flavour WHERE n = new.n; END',
        "ATTACH ':memory:' AS side",
        'CREATE TABLE side.notes (who TEXT)',
    ];

    private const LOOK = [
        'SELECT last_insert_rowid(), changes(), total_changes()',
        'PRAGMA foreign_keys',
        'PRAGMA synchronous',
        'PRAGMA database_list',
        'PRAGMA query_only',
        'PRAGMA case_sensitive_like',
        'SELECT name FROM sqlite_temp_master ORDER BY 1',
        'SELECT * FROM mine',
        'SELECT * FROM flavours ORDER BY 1',
    ];

    private const LOOK_RICH = [
        'SELECT count(*), sum(length(item)), sum(n * unicode(substr(item, -1))) FROM basket',
        'SELECT substr(item, 1, 11), substr(item, -3) FROM basket WHERE n % 50 = 1',
        'SELECT who FROM side.notes',
    ];

    private \PDO $pdo;

    /** @var array<string, \PDOStatement> */
    private array $statements = [];

    public function __construct(private readonly string $database)
    {
        $this->pdo = $this->connect();
    }

    private function connect(): \PDO
    {
        $pdo = new \PDO("sqlite:{$this->database}");
        $pdo->exec('PRAGMA busy_timeout = 20000');
        $pdo->exec('PRAGMA synchronous = OFF');

        return $pdo;
    }

    public function boot(string $boot): void
    {
        array_map($this->pdo->exec(...), [...self::SETUP, ...$boot === 'rich' ? self::RICH : []]);
        foreach (self::PREPARED as $name => [$sql, $arguments]) {
            $this->prepare($name, $sql);
            if ($arguments !== null) {
                $this->execute($name, $arguments);
            }
        }
    }

    public function restore(): void
    {
        $pdo = $this->connect();
        array_map($pdo->exec(...), self::RESTORE);
    }

    /**
     * The text has more details than SQLite's error number. The number is not stable: on each
     * connection that is older than a change of the schema by another one, such as VACUUM, an
     * invalid statement has 17 (SQLITE_SCHEMA) instead of 1.
     */
    public function error(\Throwable $e): string
    {
        return $e instanceof \PDOException ? $e->errorInfo[2] ?? $e->getMessage() : $e->getMessage();
    }

    private function rows(\PDOStatement $statement): mixed
    {
        return $statement->columnCount() > 0
            ? $statement->fetchAll(\PDO::FETCH_NUM)
            : 'affected ' . $statement->rowCount();
    }

    public function query(string $sql): mixed
    {
        return $this->rows($this->pdo->query($sql));
    }

    /** Several statements. */
    public function run(string $sql): mixed
    {
        return $this->pdo->exec($sql);
    }

    public function params(string $sql, array $arguments): mixed
    {
        $statement = $this->pdo->prepare($sql);
        $statement->execute($arguments);

        return $this->rows($statement);
    }

    public function prepare(string $name, string $sql): string
    {
        $this->statements[$name] = $this->pdo->prepare($sql);

        return 'prepared';
    }

    public function execute(string $name, array $arguments): mixed
    {
        $statement = $this->statements[$name] ?? throw new \Exception('no such statement');
        $statement->execute($arguments);
        $rows = $this->rows($statement);
        $statement->closeCursor();

        return $rows;
    }

    public function close(string $name): string
    {
        unset($this->statements[$name]);

        return 'closed';
    }

    /** Reads one row of a result and leaves the others. */
    public function half(string $sql): mixed
    {
        $this->statements['half'] = $this->pdo->query($sql);

        return $this->statements['half']->fetch(\PDO::FETCH_NUM);
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

    public function lastId(): mixed
    {
        return $this->pdo->lastInsertId();
    }

    public function look(string $boot): array
    {
        $look = array_map(
            static fn ($sql) => ['query', [$sql]],
            [...self::LOOK, ...$boot === 'rich' ? self::LOOK_RICH : []],
        );

        return [
            ...$look,
            ['execute', ['echo', ['bob']]],
            ['execute', ['flavour', [2]]],
        ];
    }
}
