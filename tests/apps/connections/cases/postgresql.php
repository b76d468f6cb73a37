<?php

/**
 * Each visit of Ann changes the state of her session. `boot`: the boot that it needs (`plain` if it
 * is not named). `drivers`: the drivers with the operation. `bob`: Bob's operations before the look.
 */

declare(strict_types=1);

$query = static fn (string ...$sql): array => array_map(static fn ($one) => ['query', [$one]], $sql);
$ann = static fn (string ...$sql): array => ['ann' => $query(...$sql)];
$rich = static fn (string ...$sql): array => ['boot' => 'rich', 'ann' => $query(...$sql)];
$params = static fn (string $sql, mixed ...$arguments): array => ['ann' => [['params', [$sql, $arguments]]]];
$execute = static fn (string $name, mixed ...$arguments): array => ['ann' => [['execute', [$name, $arguments]]]];
$only = static fn (string $driver, array $case): array => $case + ['drivers' => [$driver]];
$bob = static fn (array $case, array ...$operations): array => $case + ['bob' => $operations];

$set = "set_config('app.who', 'ann', false)";

return [
    // Statements that the boot has prepared.
    'prepared above: set_config' => $execute('set', 'ann'),
    'prepared above: set_config, then an error' => ['ann' => [
        ['execute', ['set', ['ann']]], ['query', ['SELECT nonsense']]]],
    'prepared above: set_config in a transaction' => ['ann' => [
        ['begin', []], ['execute', ['set', ['ann']]], ['commit', []]]],
    'prepared above: set_config, then exit' => ['ann' => [
        ['execute', ['set', ['ann']]], ['end', ['exit']]]],
    'prepared above: set_config, then fatal error' => ['ann' => [
        ['execute', ['set', ['ann']]], ['end', ['fatal']]]],
    'prepared above: advisory lock' => $execute('lock', 5),
    'prepared above: nextval' => $execute('ticket'),
    'prepared above: insert with a serial' => $execute('insert', 'ann'),
    'prepared above: function' => $execute('note', 'ann'),
    'prepared above: view' => $execute('view'),
    'prepared above: trigger' => $execute('watched', 1),
    'prepared above: insert into temporary table' => ['boot' => 'rich'] + $execute('pick', 'ann'),
    'prepared above: nextval of temporary sequence' => ['boot' => 'rich'] + $execute('turn'),
    'prepared above with SQL: set_config' => $rich("EXECUTE sql_set('ann')"),
    'prepared above with SQL: explained' => $rich("EXPLAIN ANALYZE EXECUTE sql_set('ann')"),

    // Names of prepared statements.
    'name deallocated and prepared again' => $only('pgsql', ['ann' => [
        ['query', ['DEALLOCATE echo']], ['prepare', ['echo', "SELECT 'ann' || \$1::text"]]]]),
    'two names exchanged' => $only('pgsql', ['ann' => [
        ['query', ['DEALLOCATE echo']], ['query', ['DEALLOCATE flavour']],
        ['prepare', ['echo', 'SELECT flavour FROM flavours WHERE n = $1']],
        ['prepare', ['flavour', 'SELECT $1::text']]]]),
    'deallocate' => $ann('DEALLOCATE {echo}'),
    'deallocate, quoted' => $ann('DEALLOCATE "{echo}"'),
    'deallocate prepare' => $ann('DEALLOCATE PREPARE {echo}'),
    'deallocate after white space' => $ann("\n DEALLOCATE {echo}"),
    'deallocate after tab' => $ann("DEALLOCATE\t{echo}"),
    'deallocate after line feed' => $ann("DEALLOCATE\n{echo}"),
    'deallocate, lower case' => $ann('deallocate {echo}'),
    'deallocate with semicolon' => $ann('DEALLOCATE {echo};'),
    'deallocate all after line feed' => $ann("DEALLOCATE\nALL"),
    'deallocate all' => $ann('deallocate all'),
    'deallocate prepare all' => $ann('DEALLOCATE PREPARE ALL'),
    'deallocate in a transaction that is rolled back' => ['ann' => [
        ['begin', []], ['query', ['DEALLOCATE {echo}']], ['rollBack', []]]],
    'deallocate by parameters' => $params('DEALLOCATE {echo}'),
    'prepared with SQL' => $ann('PREPARE mine AS SELECT 1'),
    'prepared with SQL by parameters' => $params('PREPARE mine AS SELECT 1'),
    'name left open' => $only('pgsql', ['ann' => [['prepare', ['own', "SELECT 'ann'"]]]]),
    'name used twice' => $only('pgsql', ['ann' => [
        ['prepare', ['own', "SELECT 'ann'"]], ['prepare', ['own', "SELECT 'ann'"]]]]),
    'parse succeeds and bind fails' => $only('pgsql', ['ann' => [
        ['batch', [[['P', "own~SELECT 'ann'~" . "\0\0"], ['B', "~own~\0\0\0\1\0\0\0\1x\0\0"]]]]]]),
    'parse succeeds and describe fails' => $only('pgsql', ['ann' => [
        ['batch', [[['P', "own~SELECT 'ann'~" . "\0\0"], ['D', 'Snone~']]]]]]),
    'close succeeds and parse fails' => $only('pgsql', ['ann' => [
        ['batch', [[['C', 'Secho~'], ['P', "~SELECT nonsense~" . "\0\0"]]]]]]),
    'close and parse of one name' => $only('pgsql', ['ann' => [
        ['batch', [[['C', 'Secho~'], ['P', "echo~SELECT 'ann' || \$1::text~" . "\0\0"]]]]]]),
    'prepared above: set_config in a batch that fails later' => $only('pgsql', ['ann' => [
        ['batch', [[['B', "~set~\0\0\0\1\0\0\0\3ann\0\0"], ['E', "~\0\0\0\0"], ['S', ''],
            ['P', "~SELECT nonsense~" . "\0\0"]]]]]]),
    'portal left open' => $only('pgsql', ['ann' => [
        ['query', ['BEGIN']],
        ['batch', [[['B', "left~echo~\0\0\0\1\0\0\0\3ann\0\0"]]]]]]),
    'function call' => $only('pgsql', ['ann' => [
        // pg_try_advisory_lock(bigint)
        ['batch', [[['F', pack('N', 2882) . "\0\1\0\1\0\1\0\0\0\x08" . pack('J', 5) . "\0\1"]]]]]]),

    // Settings.
    'set' => $ann("SET app.who = 'ann'"),
    'set of time zone' => $ann("SET TIME ZONE 'Asia/Tokyo'"),
    'set of names' => $ann("SET NAMES 'LATIN1'"),
    'set role' => $ann('SET ROLE pg_monitor'),
    'session authorization' => $ann('SET SESSION AUTHORIZATION pg_monitor'),
    'session characteristics' => $ann('SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY'),
    'reset' => $ann('RESET application_name'),
    'reset all' => $ann('RESET ALL'),
    'set in a transaction' => $ann('BEGIN', "SET app.who = 'ann'", 'COMMIT'),
    'set_config' => $ann("SELECT $set"),
    'set_config by parameter' => $params("SELECT set_config('app.who', $1, false)", 'ann'),
    'set_config, name by parameter' => $params('SELECT set_config($1, $2, false)', 'app.who', 'ann'),
    'set_config, qualified' => $ann("SELECT pg_catalog.set_config('app.who', 'ann', false)"),
    'set_config, quoted' => $ann("SELECT \"set_config\"('app.who', 'ann', false)"),
    'set_config, in comments' => $ann("SELECT/**/set_config/**/('app.who', 'ann', false)"),
    'set_config, escaped' => $ann("SELECT U&\"set\\005fconfig\"('app.who', 'ann', false)"),
    'set_config, escaped differently' => $ann(
        "SELECT U&\"set!005fconfig\" UESCAPE '!' ('app.who', 'ann', false)",
    ),
    'set_config in a condition' => $ann("SELECT 1 WHERE $set IS NOT NULL"),
    'set_config in an order' => $ann("SELECT n FROM flavours ORDER BY $set"),
    'set_config in a limit' => $ann("SELECT 1 LIMIT length($set)"),
    'set_config in a join' => $ann("SELECT 1 FROM flavours a JOIN flavours b ON $set = 'ann'"),
    'set_config in FROM' => $ann("SELECT * FROM $set"),
    'set_config in LATERAL' => $ann("SELECT * FROM flavours, LATERAL $set"),
    'set_config in WITH' => $ann("WITH a AS (SELECT $set AS who) SELECT who FROM a"),
    'set_config in VALUES' => $ann("VALUES ($set)"),
    'set_config in an insert' => $ann("INSERT INTO watched SELECT 1 WHERE $set IS NULL"),
    'set_config in an update' => $ann("UPDATE flavours SET flavour = flavour WHERE $set IS NULL"),
    'set_config in a delete' => $ann("DELETE FROM flavours WHERE $set IS NULL"),
    'set_config in RETURNING' => $ann("INSERT INTO ruled SELECT 1 WHERE false RETURNING 1",
        "INSERT INTO flavours VALUES (3, 'white') RETURNING $set"),
    'set_config in ON CONFLICT' => $ann(
        "INSERT INTO flavours VALUES (1, '') ON CONFLICT (n) DO UPDATE SET flavour = $set",
    ),
    'set_config in the default of a domain' => $ann('INSERT INTO filled_and_noted (n) VALUES (1)'),
    'set_config in MERGE' => $ann("MERGE INTO flavours f USING (VALUES (1)) s (n) ON f.n = s.n
        WHEN MATCHED THEN UPDATE SET flavour = $set"),
    'set_config in EXPLAIN ANALYZE' => $ann("EXPLAIN (ANALYZE, TIMING off, SUMMARY off) SELECT $set"),
    'set_config in EXPLAIN, folded' => $ann("EXPLAIN SELECT note_immutable('ann')"),
    'set_config in DECLARE' => $ann('BEGIN', "DECLARE c CURSOR FOR SELECT $set", 'FETCH c', 'COMMIT'),
    'set_config in CREATE TABLE AS' => $ann("CREATE TABLE made AS SELECT $set AS who", 'DROP TABLE made'),
    'set_config in COPY' => $ann("COPY (SELECT $set) TO '/dev/null'"),
    'set_config in DO' => $ann("DO $$ BEGIN PERFORM $set; END $$"),
    'set_config after a semicolon' => ['ann' => [['run', ["SELECT 1; SELECT $set"]]]],
    'set_config after a string with a backslash' => $ann("SELECT '\\', $set"),
    'set_config after an escape string' => $ann("SELECT E'\\'', $set"),
    'set_config after nested comments' => $ann("SELECT /* /* */ */ $set"),
    'set_config after a dollar string' => $ann("SELECT $$'$$, $set"),
    'set_config after a parameter' => $params("SELECT \$1::text,$set", 'x'),
    'set_config in a block that fails later' => $ann("SELECT $set", 'SELECT nonsense'),
    'pg_settings updated' => $ann("UPDATE pg_settings SET setting = '99MB' WHERE name = 'work_mem'"),
    'pg_settings updated, by parameter' => $params(
        'UPDATE pg_catalog.pg_settings SET setting = $1 WHERE name = $2',
        '99MB',
        'work_mem',
    ),
    'setseed' => $bob(
        $ann('SELECT setseed(0.5)'),
        ['query', ['SELECT random() = 0.9851677175347999']],
    ),

    // Functions that take SQL as text.
    'query_to_xml' => $ann("SELECT query_to_xml('SELECT set_config(''app.who'', ''ann'', false)', true, true, '')"),
    'query_to_xml_and_xmlschema' => $ann("SELECT query_to_xml_and_xmlschema(
        'SELECT set_config(''app.who'', ''ann'', false)', true, true, '')"),
    'query_to_xmlschema' => $ann("SELECT query_to_xmlschema('SELECT note_immutable(''ann'')', true, true, '')"),
    'table_to_xml' => $ann("SELECT table_to_xml('setter', true, true, '')"),
    'table_to_xml_and_xmlschema' => $ann("SELECT table_to_xml_and_xmlschema('setter', true, true, '')"),
    'schema_to_xml' => $ann("SELECT length(schema_to_xml('public', true, true, '')::text) > 0"),
    'ts_stat' => $ann("SELECT * FROM ts_stat('SELECT set_config(''app.who'', ''ann'', false)::tsvector')"),
    'ts_stat by parameter' => $params(
        'SELECT word FROM ts_stat($1)',
        "SELECT set_config('app.who', 'ann', false)::tsvector",
    ),
    'ts_rewrite' => $ann("SELECT ts_rewrite('a'::tsquery,
        'SELECT ''a''::tsquery, set_config(''app.who'', ''ann'', false)::tsquery')"),

    // The schema of the application.
    'function in plpgsql' => $ann("SELECT note('ann')"),
    'function in SQL' => $ann("SELECT note_sql('ann')"),
    'function that claims to be stable' => $ann("SELECT note_stable('ann')"),
    'function that claims to be immutable' => $ann("SELECT note_immutable('ann')"),
    'function as a set' => $ann("SELECT * FROM note('ann')"),
    'function by field notation' => $ann("SELECT ('ann'::text).note"),
    'aggregate' => $ann("SELECT note_all(x) FROM (VALUES ('ann'), ('ann')) v (x)"),
    'window function' => $ann("SELECT note_all(x) OVER () FROM (VALUES ('ann'), ('ann')) v (x)"),
    'operator' => $ann("SELECT 'an'::text @@@ 'n'::text"),
    'operator, qualified' => $ann("SELECT 'an'::text OPERATOR(public.@@@) 'n'::text"),
    'cast' => $ann("SELECT 'ann'::text::leaf"),
    'cast in CAST' => $ann("SELECT CAST('ann'::text AS leaf)"),
    'cast by function' => $ann("SELECT leaf_of('ann')"),
    'domain' => $ann('SELECT 1::judged'),
    'procedure' => $ann("CALL note_procedure('ann')"),
    'view' => $ann('SELECT who FROM setter'),
    'view of view' => $ann('SELECT who FROM setter_of_setter'),
    'view by TABLE' => $ann('TABLE setter'),
    'view by COPY' => $only('pgsql', ['ann' => [['copyOut', ['(SELECT * FROM setter)']]]]),
    'temporary view of the boot' => $rich('SELECT who FROM temporary_setter'),
    'trigger' => $ann('INSERT INTO watched VALUES (1)'),
    'trigger at commit' => $ann('BEGIN', 'INSERT INTO watched_late VALUES (1)', 'COMMIT'),
    'trigger through a foreign key' => $ann('UPDATE parents SET n = 2', 'UPDATE parents SET n = 1'),
    'trigger through COPY' => ['ann' => [['copyIn', ['watched', ['1']]]]],
    'trigger through pg_insert' => $only('pgsql', ['ann' => [['insertRow', ['watched', ['n' => 1]]]]]),
    'trigger through a function of the boot' => $params('INSERT INTO watched VALUES ($1)', 1),
    'column default' => $ann('INSERT INTO defaults (n) VALUES (1)'),
    'column default by DEFAULT' => $ann('INSERT INTO defaults VALUES (1, DEFAULT)'),
    'check' => $ann('INSERT INTO checked VALUES (1)'),
    'generated column' => $ann('INSERT INTO generated (n) VALUES (1)'),
    'index on an expression' => $ann("INSERT INTO indexed VALUES ('ann')"),
    'rule' => $ann('INSERT INTO ruled VALUES (1)'),
    'policy' => $ann('SET ROLE pg_monitor', 'SELECT n FROM guarded', 'RESET ROLE', "SELECT note('ann')"),

    // Temporary objects.
    'temporary table created' => $ann('CREATE TEMP TABLE mine (n int)'),
    'temporary table created in pg_temp' => $ann('CREATE TABLE pg_temp.mine (n int)'),
    'temporary table by SELECT INTO' => $ann('SELECT 1 AS n INTO TEMP mine'),
    'temporary table by SELECT INTO pg_temp' => $ann('SELECT 1 AS n INTO pg_temp.mine'),
    'temporary view created' => $ann('CREATE TEMP VIEW mine AS SELECT 1'),
    'temporary sequence created' => $ann('CREATE TEMP SEQUENCE mine'),
    'temporary function created' => $ann('CREATE FUNCTION pg_temp.mine() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$'),
    'insert into temporary table' => $rich("INSERT INTO basket (item) VALUES ('of ann')"),
    'insert into temporary table, qualified' => $rich("INSERT INTO pg_temp.basket (item) VALUES ('of ann')"),
    'insert into temporary table by parameter' => ['boot' => 'rich'] + $params(
        'INSERT INTO basket (item) VALUES ($1)',
        'of ann',
    ),
    'insert into temporary table in WITH' => $rich(
        "WITH x AS (INSERT INTO basket (item) VALUES ('of ann') RETURNING n) SELECT count(*) FROM x",
    ),
    'insert into temporary table by COPY' => ['boot' => 'rich', 'ann' => [['copyIn', ['basket', ["9\tof ann"]]]]],
    'insert into temporary table by function' => $rich('SELECT fill()'),
    'insert into temporary table, rolled back' => $rich(
        'BEGIN',
        "INSERT INTO basket (item) VALUES ('of ann')",
        'ROLLBACK',
    ),
    'update of temporary table' => $rich("UPDATE basket SET item = 'of ann'"),
    'delete from temporary table' => $rich('DELETE FROM basket'),
    'merge into temporary table' => $rich("MERGE INTO basket b USING (VALUES (1)) s (n) ON b.n = s.n
        WHEN MATCHED THEN UPDATE SET item = 'of ann'"),
    'truncate of temporary table' => $rich('TRUNCATE basket'),
    'truncate of several tables' => $rich('TRUNCATE cups, basket'),
    'temporary table dropped' => $rich('DROP TABLE basket'),
    'temporary table altered' => $rich('ALTER TABLE basket ADD COLUMN more int'),
    'nextval of temporary sequence' => $rich("SELECT nextval('turns')"),
    'nextval of the sequence of a temporary table' => $rich("SELECT nextval('basket_n_seq')"),
    'setval of temporary sequence' => $rich("SELECT setval('turns', 50)"),
    'nextval by parameter' => ['boot' => 'rich'] + $params('SELECT nextval($1::text::regclass)', 'turns'),
    'discard all' => $rich('DISCARD ALL'),
    'discard temp' => $rich('DISCARD TEMP'),
    'discard sequences' => $rich("SELECT nextval('turns')", 'DISCARD SEQUENCES'),

    // Sequences.
    'lastval after an insert' => $ann("INSERT INTO cups (who) VALUES ('ann')"),
    'lastval after an insert by parameter' => $params('INSERT INTO cups (who) VALUES ($1)', 'ann'),
    'lastval after an insert that is rolled back' => $ann(
        'BEGIN',
        "INSERT INTO cups (who) VALUES ('ann')",
        'ROLLBACK',
    ),
    'lastval after an insert that fails' => $ann(
        "INSERT INTO cups (n, who) VALUES (DEFAULT, 'ann'), (-1, (SELECT 'a' FROM flavours))",
        "SELECT nextval('cups_n_seq')",
    ),
    'lastval after COPY' => ['ann' => [['copyIn', ['cups (who)', ['ann']]]]],
    'nextval' => $ann("SELECT nextval('tickets')"),
    'nextval in a condition' => $ann("SELECT 1 WHERE nextval('tickets') < 0"),
    'nextval, qualified' => $ann("SELECT pg_catalog.nextval('tickets')"),
    'nextval, quoted' => $ann("SELECT \"nextval\"('tickets')"),
    'nextval, escaped' => $ann("SELECT U&\"next\\0076al\"('tickets')"),
    'nextval in a view' => $ann('SELECT * FROM next_ticket'),
    'nextval in a rule' => $ann('UPDATE ticketed SET n = 5'),
    'setval' => $ann("SELECT setval('tickets', 77)"),
    'setval, qualified' => $ann("SELECT pg_catalog.setval('tickets', 77)"),
    'lastval after an update to the default' => $ann('UPDATE renumbered SET n = DEFAULT'),
    'lastval after an insert with the default of a domain' => $ann('INSERT INTO filled (n) VALUES (1)'),
    'lastval after a cascade to the default' => $ann('DELETE FROM owners'),
    'insert after an insert of the boot' => $rich("INSERT INTO flavours VALUES (5, 'five')"),
    'prepared above: insert after an insert of the boot' => ['boot' => 'rich'] + $execute('insert', 'ann'),

    // Locks, cursors, notifications, COPY.
    'advisory lock' => $ann('SELECT pg_advisory_lock(5)'),
    'advisory lock, tried' => $ann('SELECT pg_try_advisory_lock(5)'),
    'advisory lock, shared' => $ann('SELECT pg_advisory_lock_shared(5)'),
    'advisory lock, escaped' => $ann('SELECT U&"pg\\005fadvisory\\005flock"(5)'),
    'advisory lock by parameter' => $params('SELECT pg_try_advisory_lock($1)', 5),
    'advisory lock in a transaction that is rolled back' => $ann(
        'BEGIN',
        'SELECT pg_advisory_lock(5)',
        'ROLLBACK',
    ),
    'advisory lock of the boot released' => $rich('SELECT pg_advisory_unlock(7)'),
    'all advisory locks released' => $rich('SELECT pg_advisory_unlock_all()'),
    'cursor with hold' => $ann('DECLARE c CURSOR WITH HOLD FOR SELECT 1'),
    'cursor with hold in a transaction' => $ann('BEGIN', 'DECLARE c CURSOR WITH HOLD FOR SELECT 1', 'COMMIT'),
    'cursor with hold by parameters' => $params('DECLARE c CURSOR WITH HOLD FOR SELECT 1'),
    'cursor of the boot moved' => $rich('FETCH 2 FROM shelf'),
    'cursor of the boot moved by MOVE' => $rich('MOVE 2 IN shelf'),
    'cursor of the boot closed' => $rich('CLOSE shelf'),
    'all cursors closed' => $rich('CLOSE ALL'),
    'cursor of the boot read by a function' => $rich("SELECT cursor_to_xml('shelf', 2, true, true, '')"),
    'listen' => $ann('LISTEN offers'),
    'listen and notify' => $ann('LISTEN offers', "NOTIFY offers, 'secret of ann'"),
    'unlisten' => $rich('UNLISTEN news'),
    'unlisten all' => $rich('UNLISTEN *'),
    'notify' => $rich("NOTIFY news, 'secret of ann'"),
    'pg_notify' => $rich("SELECT pg_notify('news', 'secret of ann')"),
    'pg_notify by parameter' => ['boot' => 'rich'] + $params("SELECT pg_notify('news', $1)", 'secret of ann'),
    'pg_notify in a condition' => $rich("SELECT 1 WHERE pg_notify('news', 'secret of ann')::text IS NULL"),
    'copy that fails after a nextval' => ['ann' => [['copyIn', ['cups (who, n)', ["ann\tx"]]],
        ['query', ["SELECT nextval('cups_n_seq')"]]]],
    'result not read' => $only('pgsql', ['ann' => [['send', ["SELECT 'secret of ann'"]]]]),
    'client encoding' => $only('pgsql', ['ann' => [['encode', ['LATIN1']]]]),

    // Transactions that stay open.
    'transaction left open' => $ann('BEGIN', "INSERT INTO cups (who) VALUES ('ann')"),
    'failed transaction left open' => $ann('BEGIN', 'SAVEPOINT s', 'SELECT nonsense', "SELECT $set"),
    'failed transaction left open after a setting' => $ann("SELECT $set", 'BEGIN', 'SELECT nonsense'),
    'rollback and chain' => $ann('BEGIN', 'ROLLBACK AND CHAIN', "SELECT $set", 'COMMIT AND CHAIN'),

    // Processes.
    'setting in a grandchild' => ['hidden' => true] + $bob(
        ['ann' => [['daemon', [['query', ["SET app.who = 'secret of ann'"]]]]]],
        ['await', []],
    ),
    'prepared above: executed in a grandchild' => ['hidden' => true] + $bob(
        ['ann' => [['daemon', [['execute', ['set', ['secret of ann']]]]]]],
        ['await', []],
    ),

    // Extensions.
    'pg_trgm: set_limit' => $bob($ann('SELECT set_limit(0.9)'), ['query', ['SELECT show_limit()']]),
    'pg_trgm: set_limit by parameter' => $bob(
        $params('SELECT set_limit($1)', 0.9),
        ['query', ['SELECT show_limit()']],
    ),
    'library loaded' => $bob($ann("LOAD 'auto_explain'"), ['query', ['SHOW auto_explain.log_min_duration']]),
];
