<?php

declare(strict_types=1);

namespace Connections;

/** Common part of the PHP extensions for MySQL. */
abstract class MysqlServer implements Connection
{
    use Descendants;

    /** Definitions of the system tables, of which stored functions need one. */
    private const SYSTEM_TABLES = [
        '/usr/share/mysql/mysql_system_tables.sql',
        '/usr/share/mysql/mariadb_system_tables.sql',
        '/usr/share/mariadb/mariadb_system_tables.sql',
    ];

    private const SETUP = [
        'CREATE TABLE cups (n int AUTO_INCREMENT PRIMARY KEY, who varchar(99)) ENGINE=InnoDB',
        'CREATE TABLE flavours (n int PRIMARY KEY, flavour varchar(99)) ENGINE=InnoDB',
        "INSERT INTO flavours VALUES (1, 'green'), (2, 'black')",
        'CREATE TABLE watched (n int) ENGINE=InnoDB',
        'CREATE TABLE locked (n int) ENGINE=InnoDB',
        'CREATE TABLE parents (n int PRIMARY KEY) ENGINE=InnoDB',
        'CREATE SEQUENCE tickets',
        'CREATE TABLE numbered (n int DEFAULT NEXTVAL(tickets), v int) ENGINE=InnoDB',
        'INSERT INTO numbered VALUES (0, 0)',
        'CREATE TABLE noted (n text DEFAULT (@who := v), v text) ENGINE=InnoDB',
        'CREATE TABLE computed (v text, n text AS (@who := v) VIRTUAL) ENGINE=InnoDB',
        "INSERT INTO computed (v) VALUES ('computed')",
        'CREATE VIEW next_ticket AS SELECT NEXTVAL(tickets) AS n',
        "CREATE FUNCTION note(v text) RETURNS text BEGIN SET @who = v; RETURN v; END",
        "CREATE FUNCTION take(v text) RETURNS int RETURN GET_LOCK(v, 0)",
        "CREATE FUNCTION calm(v text) RETURNS text DETERMINISTIC NO SQL BEGIN SET @who = v; RETURN v; END",
        "CREATE PROCEDURE note_procedure(v text) SET @who = v",
        "CREATE PROCEDURE give(OUT v text) SET v = 'ann'",
        "CREATE TRIGGER watch BEFORE INSERT ON watched FOR EACH ROW SET @who = 'trigger'",
        "CREATE TRIGGER lock_it BEFORE INSERT ON locked FOR EACH ROW SET NEW.n = GET_LOCK('{database}', 0)",
        "CREATE VIEW setter AS SELECT note('view') AS who",
        "CREATE VIEW locker AS SELECT GET_LOCK('{database}', 0) AS who",
    ];

    private const RESTORE = [
        'DELETE FROM cups', 'ALTER TABLE cups AUTO_INCREMENT = 1', 'DELETE FROM flavours',
        "INSERT INTO flavours VALUES (1, 'green'), (2, 'black')", 'ALTER SEQUENCE tickets RESTART 1',
    ];

    private const PREPARED = [
        'echo' => ['SELECT CONCAT(?)', ['boot']],
        'add' => ['SELECT ? + ?', [1, 2]],
        'types' => ['SELECT ?, ?', [1, 2]],
        'fresh' => ['SELECT ?, ?', null],
        'set' => ['SET @who = ?', null],
        'lock' => ['SELECT GET_LOCK(?, 0)', null],
        'insert' => ['INSERT INTO cups (who) VALUES (?)', null],
        'note' => ['SELECT note(?)', null],
        'watched' => ['INSERT INTO watched VALUES (?)', null],
        'flavour' => ['SELECT flavour FROM flavours WHERE n = ?', [1]],
        'flavours' => ['SELECT n, flavour FROM flavours WHERE n > ? ORDER BY n', [0]],
    ];

    private const RICH = [
        "SET @who = 'boot'",
        "SET SESSION lock_wait_timeout = 77",
        'CREATE TEMPORARY TABLE basket (n int AUTO_INCREMENT PRIMARY KEY, item varchar(99)) ENGINE=InnoDB',
        "INSERT INTO basket (item) VALUES ('of the boot'), ('second')",
        "SELECT GET_LOCK('{database}.boot', 0)",
        "PREPARE sql_echo FROM 'SELECT ?'",
        "PREPARE sql_set FROM 'SET @who = ?'",
    ];

    private const PREPARED_RICH = [
        'pick' => ['INSERT INTO basket (item) VALUES (?)', null],
    ];

    private const LOOK = [
        'SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID(), @@warning_count, @@error_count',
        'SHOW WARNINGS',
        'SELECT @who, @other',
        "SELECT IS_USED_LOCK('{database}') IS NOT NULL, IS_USED_LOCK('{database}.boot') IS NOT NULL",
        "SELECT variable_name, session_value FROM information_schema.system_variables
            WHERE session_value <> global_value AND variable_name NOT IN ('timestamp', 'last_gtid',
            'pseudo_thread_id', 'rand_seed1', 'rand_seed2') ORDER BY 1",
        'SELECT @@last_insert_id, @@insert_id, @@identity, @@in_transaction',
        'SELECT LASTVAL(tickets)',
        'SELECT DATABASE(), USER()',
        'SELECT * FROM mine',
        'EXECUTE own_sql',
        'HANDLER flavours READ FIRST',
        'SELECT n FROM parents',
    ];

    private const LOOK_RICH = [
        'SELECT * FROM basket ORDER BY 1',
        "SET @other = 'bob'",
        'EXECUTE sql_echo USING @other',
    ];

    protected readonly string $place;

    public function __construct(protected readonly string $database)
    {
        $this->place = getenv('DATABASE_HOST');
        $link = new \mysqli(null, 'root', '', '', 0, $this->place);
        $link->query("CREATE DATABASE IF NOT EXISTS $database");
        $link->select_db($database);
        if (!$link->query("SHOW TABLES LIKE 'flavours'")->fetch_row()) {
            $this->createRoutineTable($link);
            foreach (self::SETUP as $sql) {
                $link->query(str_replace('{database}', $database, $sql));
            }
        }
        $link->close();
        $this->connect();
    }

    private function createRoutineTable(\mysqli $link): void
    {
        $files = array_filter(self::SYSTEM_TABLES, is_file(...));
        preg_match('/CREATE TABLE IF NOT EXISTS proc .*?;/s', file_get_contents(current($files)), $found);
        $link->query('CREATE DATABASE IF NOT EXISTS mysql');
        $link->query(str_replace('EXISTS proc', 'EXISTS mysql.proc', rtrim($found[0], ';')));
    }

    public function boot(string $boot): void
    {
        $this->waitUntilAlone();
        $is_rich = $boot === 'rich';
        foreach ($is_rich ? self::RICH : [] as $sql) {
            $this->query(str_replace('{database}', $this->database, $sql));
        }
        foreach (self::PREPARED + ($is_rich ? self::PREPARED_RICH : []) as $name => [$sql, $arguments]) {
            $this->prepare($name, $sql);
            if ($arguments !== null) {
                $this->execute($name, $arguments);
            }
        }
        $this->bind();
        $this->query('SELECT 1');
    }

    /** The former visitor's connection may still be ending; its locks are held until then. */
    private function waitUntilAlone(): void
    {
        $others = "SELECT COUNT(*) FROM information_schema.processlist
            WHERE id <> CONNECTION_ID() AND db = '{$this->database}'";
        for ($i = 0; $i < 1000 && (int) $this->query($others)[0][0] > 0; $i++) {
            usleep(1000);
        }
    }

    public function restore(): void
    {
        $link = new \mysqli(null, 'root', '', $this->database, 0, $this->place);
        foreach (self::RESTORE as $sql) {
            $link->query($sql);
        }
        $link->close();
    }

    public function look(string $boot): array
    {
        $look = array_map(
            static fn ($sql) => ['query', [$sql]],
            [...self::LOOK, ...$boot === 'rich' ? self::LOOK_RICH : []],
        );

        return [
            ...$look,
            ['state', []],
            ['execute', ['echo', ['bob']]],
            ['execute', ['add', [3, 4]]],
            ['execute', ['types', [5, 6]]],
            ['execute', ['fresh', [7, 'bob']]],
            ['executeBound', [8, 9]],
            ['execute', ['flavour', [2]]],
            ['execute', ['flavours', [1]]],
            ['params', ['SELECT ?', ['bob']]],
            ['prepare', ['own', 'SELECT ? + 1']],
            ['execute', ['own', [5]]],
            ['close', ['own']],
        ];
    }

    abstract protected function connect(): void;

    /** Prepares a statement whose parameters are bound once, and executes it. */
    abstract protected function bind(): void;

    abstract public function executeBound(int $first, int $second): mixed;

    abstract public function query(string $sql): mixed;

    abstract public function prepare(string $name, string $sql): string;

    abstract public function execute(string $name, array $arguments): mixed;
}
