<?php

declare(strict_types=1);

namespace Connections;

/** Common part of the PHP extensions for PostgreSQL. */
abstract class PgsqlServer implements Connection
{
    use Descendants;

    private const SETUP = [
        'CREATE TABLE cups (n serial PRIMARY KEY, who text)',
        'CREATE TABLE flavours (n int PRIMARY KEY, flavour text)',
        "INSERT INTO flavours VALUES (1, 'green'), (2, 'black')",
        'CREATE SEQUENCE tickets',
        "CREATE FUNCTION note(text) RETURNS text LANGUAGE plpgsql
            AS $$ BEGIN RETURN set_config('app.who', $1, false); END $$",
        "CREATE FUNCTION note_stable(text) RETURNS text LANGUAGE plpgsql STABLE
            AS $$ BEGIN RETURN set_config('app.who', $1, false); END $$",
        "CREATE FUNCTION note_immutable(text) RETURNS text LANGUAGE plpgsql IMMUTABLE
            AS $$ BEGIN RETURN set_config('app.who', $1, false); END $$",
        "CREATE FUNCTION note_sql(text) RETURNS text LANGUAGE sql
            AS $$ SELECT set_config('app.who', $1, false) $$",
        "CREATE FUNCTION note_twice(text, text) RETURNS text LANGUAGE sql
            AS $$ SELECT set_config('app.who', $1 || $2, false) $$",
        "CREATE FUNCTION note_row() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN PERFORM set_config('app.who', 'trigger', false); RETURN NEW; END $$",
        "CREATE FUNCTION note_int(int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE
            AS $$ BEGIN PERFORM set_config('app.who', 'int', false); RETURN true; END $$",
        "CREATE PROCEDURE note_procedure(text) LANGUAGE plpgsql
            AS $$ BEGIN PERFORM set_config('app.who', $1, false); END $$",
        "CREATE FUNCTION fill() RETURNS int LANGUAGE plpgsql
            AS $$ BEGIN INSERT INTO pg_temp.basket (item) VALUES ('filled'); RETURN 1; END $$",
        "CREATE FUNCTION note_step(text, text) RETURNS text LANGUAGE sql
            AS $$ SELECT set_config('app.who', $2, false) $$",
        'CREATE AGGREGATE note_all(text) (SFUNC = note_step, STYPE = text)',
        'CREATE OPERATOR @@@ (LEFTARG = text, RIGHTARG = text, FUNCTION = note_twice)',
        "CREATE TYPE leaf AS (n int)",
        "CREATE FUNCTION leaf_of(text) RETURNS leaf LANGUAGE sql
            AS $$ SELECT ROW(length(set_config('app.who', $1, false)))::leaf $$",
        'CREATE CAST (text AS leaf) WITH FUNCTION leaf_of(text)',
        "CREATE VIEW setter AS SELECT set_config('app.who', 'view', false) AS who",
        "CREATE VIEW setter_of_setter AS SELECT who FROM setter",
        'CREATE TABLE watched (n int)',
        'CREATE TRIGGER watch BEFORE INSERT OR UPDATE ON watched
            FOR EACH ROW EXECUTE FUNCTION note_row()',
        'CREATE TABLE watched_late (n int)',
        'CREATE CONSTRAINT TRIGGER watch AFTER INSERT ON watched_late DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION note_row()',
        'CREATE TABLE parents (n int PRIMARY KEY)',
        'CREATE TABLE children (n int REFERENCES parents ON UPDATE CASCADE)',
        'CREATE TRIGGER watch BEFORE UPDATE ON children
            FOR EACH ROW EXECUTE FUNCTION note_row()',
        'INSERT INTO parents VALUES (1)',
        'INSERT INTO children VALUES (1)',
        "CREATE TABLE defaults (n int, who text DEFAULT note('default'))",
        'CREATE TABLE checked (n int CHECK (note_int(n)))',
        "CREATE TABLE generated (n int, who text GENERATED ALWAYS AS (note_immutable('generated')) STORED)",
        'CREATE TABLE indexed (who text)',
        'CREATE INDEX indexed_who ON indexed (note_immutable(who))',
        'CREATE DOMAIN judged AS int CHECK (note_int(VALUE))',
        'CREATE TABLE ruled (n int)',
        "CREATE RULE note AS ON INSERT TO ruled DO ALSO SELECT set_config('app.who', 'rule', false)",
        "CREATE VIEW next_ticket AS SELECT nextval('tickets') AS n",
        'CREATE TABLE ticketed (n int)',
        'INSERT INTO ticketed VALUES (1)',
        "CREATE RULE take AS ON UPDATE TO ticketed DO ALSO SELECT nextval('tickets')",
        "CREATE TABLE renumbered (n int DEFAULT nextval('tickets'))",
        'INSERT INTO renumbered VALUES (0)',
        "CREATE DOMAIN numbered AS int DEFAULT nextval('tickets')",
        'CREATE TABLE filled (n int, ticket numbered)',
        "CREATE DOMAIN noted AS text DEFAULT note('domain')",
        'CREATE TABLE filled_and_noted (n int, who noted)',
        'CREATE TABLE owners (n int PRIMARY KEY)',
        "CREATE TABLE owned (n int DEFAULT nextval('tickets') REFERENCES owners ON DELETE SET DEFAULT)",
        "INSERT INTO owners SELECT generate_series(1, 1000)",
        'INSERT INTO owned VALUES (1000)',
        'CREATE TABLE guarded (n int)',
        'INSERT INTO guarded VALUES (1)',
        'ALTER TABLE guarded ENABLE ROW LEVEL SECURITY',
        'ALTER TABLE guarded FORCE ROW LEVEL SECURITY',
        'CREATE POLICY note ON guarded USING (note_int(n))',
        'CREATE EXTENSION IF NOT EXISTS pg_trgm',
    ];

    private const RESTORE = [
        "SET lock_timeout = '5s'",
        "DELETE FROM cups; DELETE FROM flavours; INSERT INTO flavours VALUES (1, 'green'), (2, 'black');
            SELECT setval('cups_n_seq', 1, false), setval('tickets', 1, false)",
    ];

    /** Text of the statements of the boot, and arguments with which the boot executes them. */
    private const PREPARED = [
        'echo' => ['SELECT $1::text', ['boot']],
        'add' => ['SELECT $1::int + $2::int', [1, 2]],
        'set' => ["SELECT set_config('app.who', $1, false)", null],
        'lock' => ['SELECT pg_try_advisory_lock($1::int)', null],
        'insert' => ['INSERT INTO cups (who) VALUES ($1)', ['boot']],
        'ticket' => ["SELECT nextval('tickets')", null],
        'note' => ['SELECT note($1)', null],
        'view' => ['SELECT who FROM setter', null],
        'watched' => ['INSERT INTO watched VALUES ($1)', null],
        'flavour' => ['SELECT flavour FROM flavours WHERE n = $1', [1]],
    ];

    private const RICH = [
        "SET app.who = 'boot'",
        'CREATE TEMP TABLE basket (n serial, item text)',
        "INSERT INTO basket (item) VALUES ('of the boot'), ('second')",
        'CREATE TEMP SEQUENCE turns',
        "CREATE TEMP VIEW temporary_setter AS SELECT set_config('app.who', 'view', false) AS who",
        'SELECT pg_advisory_lock(7)',
        'LISTEN news',
        'DECLARE shelf CURSOR WITH HOLD FOR SELECT generate_series(1, 5)',
        'PREPARE sql_echo (text) AS SELECT $1',
        "PREPARE sql_set (text) AS SELECT set_config('app.who', $1, false)",
    ];

    private const PREPARED_RICH = [
        'pick' => ['INSERT INTO basket (item) VALUES ($1)', null],
        'turn' => ["SELECT nextval('turns')", null],
    ];

    /** The former visitor's connection may still be ending; its locks are held until then. */
    private const WAIT_UNTIL_ALONE = 'DO $$ BEGIN FOR i IN 1..1000 LOOP
        PERFORM pg_stat_clear_snapshot();
        EXIT WHEN NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
            AND backend_type = \'client backend\' AND pid <> pg_backend_pid());
        PERFORM pg_sleep(0.001); END LOOP; END $$';

    private const LOOK = [
        'SELECT lastval()',
        "SELECT currval('cups_n_seq')",
        "SELECT currval('tickets')",
        "SELECT current_setting('app.who', true)",
        "SELECT name, setting FROM pg_settings WHERE source = 'session' ORDER BY 1",
        "SELECT classid, objid, mode FROM pg_locks WHERE locktype = 'advisory'
            AND pid = pg_backend_pid() ORDER BY 1, 2, 3",
        "SELECT name, statement FROM pg_prepared_statements ORDER BY 1",
        'SELECT name, statement, is_holdable FROM pg_cursors ORDER BY 1',
        'SELECT relname, relkind FROM pg_class
            WHERE relnamespace = pg_my_temp_schema() ORDER BY 1',
        'SELECT proname FROM pg_proc WHERE pronamespace = pg_my_temp_schema() ORDER BY 1',
        'SELECT * FROM pg_listening_channels() ORDER BY 1',
        'SELECT current_user, session_user, current_schema()',
    ];

    private const LOOK_RICH = [
        'SELECT * FROM basket ORDER BY 1',
        'SELECT last_value, is_called FROM turns',
        'SELECT last_value, is_called FROM basket_n_seq',
        'FETCH 1 FROM shelf',
        "EXECUTE sql_echo('of bob')",
        "SELECT currval('turns')",
    ];

    protected readonly string $place;

    public function __construct(protected readonly string $database)
    {
        $this->place = getenv('DATABASE_HOST');
        $this->connect();
    }

    public function boot(string $boot): void
    {
        $this->run(self::WAIT_UNTIL_ALONE);
        if ($this->query("SELECT to_regclass('guarded')") === [[null]]) {
            $this->setUp(self::SETUP);
        }
        $this->run("SET application_name = 'boot'");
        $is_rich = $boot === 'rich';
        foreach ($is_rich ? self::RICH : [] as $sql) {
            $this->run($sql);
        }
        foreach (self::PREPARED + ($is_rich ? self::PREPARED_RICH : []) as $name => [$sql, $arguments]) {
            $this->prepare($name, $sql);
            if ($arguments !== null && $name !== 'insert') {
                $this->execute($name, $arguments);
            }
        }
        $this->hold();
    }

    /** Called at the end of the boot: keeps the objects that Samovar does not free below a checkpoint. */
    protected function hold(): void
    {
    }

    public function restore(): void
    {
        $this->setUp(self::RESTORE);
    }

    /** @param list<string> $statements */
    private function setUp(array $statements): void
    {
        $link = pg_connect($this->place() . ' application_name=setup', PGSQL_CONNECT_FORCE_NEW);
        foreach ($statements as $sql) {
            pg_query($link, $sql);
        }
        pg_close($link);
    }

    protected function place(): string
    {
        return "host={$this->place} dbname={$this->database} user=postgres";
    }

    public function look(string $boot): array
    {
        $look = array_map(
            static fn ($sql) => ['query', [$sql]],
            [...self::LOOK, ...$boot === 'rich' ? self::LOOK_RICH : []],
        );

        return [
            ['state', []],
            ...$look,
            ['execute', ['echo', ['bob']]],
            ['execute', ['add', [3, 4]]],
            ['execute', ['flavour', [2]]],
            ['params', ['SELECT $1::text', ['bob']]],
            ['prepare', ['own', 'SELECT $1::int']],
            ['execute', ['own', [5]]],
            ['close', ['own']],
            ['notifications', []],
        ];
    }

    abstract protected function connect(): void;

    abstract public function run(string $sql): mixed;

    abstract public function query(string $sql): mixed;

    abstract public function prepare(string $name, string $sql): string;

    abstract public function execute(string $name, array $arguments): mixed;
}
