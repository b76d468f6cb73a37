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
$mysqli = static fn (array ...$ann): array => ['ann' => $ann, 'drivers' => ['mysqli']];
$pdo = static fn (array $case): array => $case + ['drivers' => ['pdo_mysql', 'pdo_mysql_emulated']];
$native = static fn (array $case): array => $case + ['drivers' => ['mysqli', 'pdo_mysql']];
$bob = static fn (array $case, array ...$operations): array => $case + ['bob' => $operations];

$lock = '{database}';
// Visible only after a rollback: the driver then takes the state of the server for another one.
$hidden = ['hidden' => true];

return [
    // Statements that the boot has prepared.
    'prepared above: variable' => $execute('set', 'ann'),
    'prepared above: variable, then exit' => ['ann' => [['execute', ['set', ['ann']]], ['end', ['exit']]]],
    'prepared above: variable, then exception' => [
        'ann' => [['execute', ['set', ['ann']]], ['end', ['exception']]]],
    'prepared above: lock' => $execute('lock', $lock),
    'prepared above: insert' => $execute('insert', 'ann'),
    'prepared above: function' => $execute('note', 'ann'),
    'prepared above: trigger' => $execute('watched', 1),
    'prepared above: insert into temporary table' => ['boot' => 'rich'] + $execute('pick', 'ann'),
    'prepared above with SQL: variable' => $rich("SET @other = 'ann'", 'EXECUTE sql_set USING @other'),
    'prepared above with SQL: variable by literal' => $rich("EXECUTE sql_set USING 'ann'"),
    'prepared above with SQL: deallocated' => $rich('DEALLOCATE PREPARE sql_echo'),
    'prepared above with SQL: replaced' => $rich("PREPARE sql_echo FROM 'SELECT CONCAT(''ann'', ?)'"),
    'prepared above: other types of parameters' => $hidden + $native($execute('types', 'ann', 'secret of ann')),
    'prepared above: other types of some parameters' => $hidden + $native($execute('types', 1, 'ann')),
    'prepared above: other types of bound parameters' => $hidden + $native(
        $execute('bound', 'ann', 'secret of ann'),
    ),
    'prepared above: doubles as bound parameters' => $hidden + $mysqli(['execute', ['bound', [1.5, 2.5]]]),
    'prepared above: doubles instead of integers' => $hidden + $mysqli(['execute', ['types', [1.5, 2.5]]]),
    'prepared above: nulls' => $hidden + $native($execute('types', null, null)),
    'prepared above: first types of parameters' => $hidden + $bob(
        $native($execute('fresh', 'ann', 1)),
        ['execute', ['fresh', ['bob', 2]]],
    ),
    'prepared above: closed' => $mysqli(['close', ['echo']]),
    'prepared above: cursor' => $hidden + $bob($mysqli(['cursor', ['flavours', [0]]]), ['execute', ['flavours', [0]]]),
    'long data without execution' => $mysqli(['longData', ['echo', 0, 'secret of ann', false]]),
    'long data without execution, then sent again' => $bob(
        $mysqli(['longData', ['echo', 0, 'secret of ann;', false]]),
        ['longData', ['echo', 0, 'bob', true]],
    ),
    'long data of the second parameter' => $mysqli(['longData', ['types', 1, 'secret of ann', false]]),
    'long data and execution, then more' => $mysqli(
        ['longData', ['echo', 0, 'ann', true]],
        ['longData', ['echo', 0, 'secret of ann', false]],
    ),
    'long data, reset, then more' => $mysqli(
        ['longData', ['echo', 0, 'ann', false]],
        ['reset', ['echo']],
        ['longData', ['echo', 0, 'secret of ann', false]],
    ),

    // Variables.
    'variable' => $ann("SET @who = 'ann'"),
    'variable by parameter' => $params('SET @who = ?', 'ann'),
    'variable, quoted' => $ann("SET @`who` = 'ann'"),
    'variable in a select' => $ann("SELECT @who := 'ann'"),
    'variable in a select by parameter' => $params('SELECT @who := ?', 'ann'),
    'variable after INTO' => $ann("SELECT 'ann' INTO @who"),
    'variable after INTO at the end' => $ann("SELECT n, flavour FROM flavours WHERE n = 1 INTO @other, @who"),
    'variable in an update' => $ann("UPDATE flavours SET flavour = (@who := flavour)"),
    'variable in an insert' => $ann("INSERT INTO parents SELECT @who := 5", 'DELETE FROM parents'),
    'variable in a condition' => $ann("SELECT 1 FROM flavours WHERE (@who := 'ann') = ''"),
    'variable in a versioned comment' => $ann("SELECT 1 /*! , @who := 'ann' */"),
    'variable in a comment for MariaDB' => $ann("SELECT 1 /*M! , @who := 'ann' */"),
    'variable after a comment' => $ann("/* a */ SET @who = 'ann'"),
    'variable after a comment to the end of the line' => $ann("-- a\nSET @who = 'ann'"),
    'variable after an escaped quote' => $ann("SELECT '\\'', @who := 'ann'"),
    'variable after a doubled quote' => $ann("SELECT '''', @who := 'ann'"),
    'variable in a compound statement' => $ann("BEGIN NOT ATOMIC SET @who = 'ann'; END"),
    'variable in IF' => $ann("IF 1 THEN SET @who = 'ann'; END IF"),
    'variable in EXECUTE IMMEDIATE' => $ann("EXECUTE IMMEDIATE 'SET @who = ''ann'''"),
    'variable in DO' => $ann("DO @who := 'ann'"),
    'variable in WITH' => $ann("WITH a AS (SELECT @who := 'ann' AS who) SELECT who FROM a"),
    'variable in VALUES' => $ann("VALUES (@who := 'ann')"),
    'variable in EXPLAIN' => $ann("ANALYZE SELECT @who := 'ann'"),
    'variable in a procedure' => $ann("CALL note_procedure('ann')"),
    'variable as a result of a procedure' => $ann('CALL give(@who)'),
    'variable in a function' => $ann("SELECT note('ann')"),
    'variable in a function, quoted' => $ann("SELECT `note`('ann')"),
    'variable in a function, qualified' => $ann("SELECT {database}.note('ann')"),
    'variable in a function that claims to be pure' => $ann("SELECT calm('ann')"),
    'variable in a function in an update' => $ann("UPDATE flavours SET n = n WHERE note('ann') = ''"),
    'variable in a view' => $ann('SELECT who FROM setter'),
    'variable in a trigger' => $ann('INSERT INTO watched VALUES (1)'),
    'variable in a trigger by REPLACE' => $ann('REPLACE INTO watched VALUES (1)'),
    'variable in a trigger by parameter' => $params('INSERT INTO watched VALUES (?)', 1),
    'variable in a trigger by LOAD DATA' => $ann("LOAD DATA INFILE '/etc/hostname' INTO TABLE watched (@who)"),
    'variable from diagnostics' => $ann('SELECT 1', 'GET DIAGNOSTICS @who = NUMBER'),

    // Settings of the session.
    'setting' => $ann('SET SESSION sql_mode = \'\''),
    'setting, at signs' => $ann('SET @@session.lock_wait_timeout = 5'),
    'setting of the next statement' => $ann('SET insert_id = 500'),
    'setting of last_insert_id' => $ann('SET last_insert_id = 500'),
    'setting of time' => $bob($ann('SET timestamp = 1000'), ['query', ['SELECT NOW() < "2001-01-01"']]),
    'setting of seeds' => $bob($ann('SET rand_seed1 = 5, rand_seed2 = 7'), ['query', ['SELECT RAND() < 0.0001']]),
    'names' => $ann('SET NAMES gbk'),
    'time zone' => $ann("SET time_zone = '+05:00'"),
    'isolation' => $ann('SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE'),
    'isolation of the next transaction' => $bob(
        $ann('SET TRANSACTION READ ONLY'),
        ['query', ['UPDATE flavours SET n = 1 WHERE n = 1']],
    ),
    'database' => $ann('USE information_schema'),
    'autocommit' => $ann('SET autocommit = 0'),
    'autocommit by method' => ['ann' => [['autocommit', [false]]], 'drivers' => ['mysqli', 'pdo_mysql',
        'pdo_mysql_emulated']],
    'charset by method' => $mysqli(['charset', ['gbk']]),
    'database by method' => $mysqli(['database', ['information_schema']]),
    'user by method' => $mysqli(['changeUser', []]),
    'several statements' => ['ann' => [['run', ["SELECT 1; SET @who = 'ann'"]]],
        'drivers' => ['mysqli', 'pdo_mysql_emulated']],

    // Locks.
    'lock' => $ann("SELECT GET_LOCK('$lock', 0)"),
    'lock by parameter' => $params('SELECT GET_LOCK(?, 0)', $lock),
    'lock with a space' => $ann("SELECT GET_LOCK ('$lock', 0)"),
    'lock in DO' => $ann("DO GET_LOCK('$lock', 0)"),
    'lock in a condition' => $ann("SELECT 1 FROM flavours WHERE GET_LOCK('$lock', 0) > 5"),
    'lock in a benchmark' => $ann("SELECT BENCHMARK(1, GET_LOCK('$lock', 0))"),
    'lock in a function' => $ann("SELECT take('$lock')"),
    'lock in a trigger' => $ann('INSERT INTO locked VALUES (1)'),
    'lock in a view' => $ann('SELECT who FROM locker'),
    'lock in an update' => $ann("UPDATE flavours SET n = n WHERE GET_LOCK('$lock', 0) > 5"),
    'lock in a transaction that is rolled back' => $ann('BEGIN', "SELECT GET_LOCK('$lock', 0)", 'ROLLBACK'),
    'lock of the boot released' => $rich("SELECT RELEASE_LOCK('{database}.boot')"),
    'lock of the boot released by parameter' => ['boot' => 'rich']
        + $params('SELECT RELEASE_LOCK(?)', '{database}.boot'),
    'all locks released' => $rich('SELECT RELEASE_ALL_LOCKS()'),
    'tables locked' => $ann('LOCK TABLES flavours READ'),
    'handler' => $ann('HANDLER flavours OPEN'),
    'global read lock' => $bob(
        $ann('FLUSH TABLES flavours WITH READ LOCK'),
        ['query', ['UPDATE flavours SET n = 1 WHERE n = 1']],
    ),

    // Values of the last statement.
    'last id' => $ann("INSERT INTO cups (who) VALUES ('ann')"),
    'last id by parameter' => $params('INSERT INTO cups (who) VALUES (?)', 'ann'),
    'last id, then a transaction' => $ann("INSERT INTO cups (who) VALUES ('ann')", 'BEGIN', 'ROLLBACK'),
    'last id of a transaction that is rolled back' => $ann(
        'BEGIN',
        "INSERT INTO cups (who) VALUES ('ann')",
        'ROLLBACK',
    ),
    'last id by an argument' => $ann('SELECT LAST_INSERT_ID(500)'),
    'last id by an argument in an update' => $ann('UPDATE flavours SET n = LAST_INSERT_ID(n) WHERE n = 2'),
    'last id by a parameter' => $params('SELECT LAST_INSERT_ID(?)', 500),
    'last id with a space' => $ann('SELECT LAST_INSERT_ID (500)'),
    'last id of PDO' => $bob($pdo($ann("INSERT INTO cups (who) VALUES ('ann')")), ['lastId', []]),
    'found rows' => $ann('SELECT * FROM flavours'),
    'found rows, seen after begin' => $bob(
        $ann('SELECT * FROM flavours'),
        ['begin', []],
        ['query', ['SELECT FOUND_ROWS()']],
    ),
    'found rows, seen after an update' => $bob(
        $ann('SELECT * FROM flavours'),
        ['query', ['UPDATE flavours SET n = n WHERE n = 1']],
        ['query', ['SELECT FOUND_ROWS()']],
    ),
    'found rows, seen after an error' => $bob(
        $ann('SELECT * FROM flavours'),
        ['query', ['SELECT nonsense']],
        ['query', ['SELECT FOUND_ROWS()']],
    ),
    'found rows, seen after a prepared statement that did not run' => $bob(
        $ann('SELECT * FROM flavours'),
        ['prepare', ['own', 'SELECT * FROM flavours']],
        ['query', ['SELECT FOUND_ROWS()']],
    ),
    'found rows of an own prepared statement' => $bob(
        $ann('SELECT 1'),
        ['params', ['SELECT n FROM flavours WHERE n > ?', [0]]],
        ['query', ['SELECT FOUND_ROWS()']],
        ['prepare', ['own', 'SELECT n FROM flavours WHERE n > ?']],
        ['execute', ['own', [0]]],
        ['query', ['SELECT FOUND_ROWS(), ROW_COUNT()']],
    ),
    'found rows of a statement of the boot' => $bob(
        $ann('SELECT 1'),
        ['execute', ['flavours', [0]]],
        ['query', ['SELECT FOUND_ROWS()']],
    ),
    'found rows without limit' => $ann('SELECT SQL_CALC_FOUND_ROWS * FROM flavours LIMIT 1'),
    'found rows of a prepared statement' => $execute('flavours', 0),
    'row count' => $ann("INSERT INTO cups VALUES (900, 'ann'), (901, 'ann')", 'DELETE FROM cups WHERE n = 900'),
    'row count of a delete' => $ann('DELETE FROM cups WHERE n >= 900', 'DELETE FROM cups WHERE n >= 900'),
    'row count of a transaction' => $ann('BEGIN', 'DELETE FROM flavours', 'ROLLBACK'),
    'warnings' => $ann("SELECT 1 + 'secret of ann'"),
    'warnings by parameter' => $params('SELECT 1 + ?', 'secret of ann'),
    'warnings of a prepared statement of the boot' => $execute('add', 1, 'secret of ann'),
    'warnings, seen first' => $bob($ann("SELECT 1 + 'secret of ann'"), ['query', ['SHOW WARNINGS']]),
    'warnings, counted first' => $bob($ann("SELECT 1 + 'secret of ann'"), ['query', ['SHOW COUNT(*) WARNINGS']]),
    'warnings of DROP' => $ann('DROP TABLE IF EXISTS secret_of_ann'),
    'warnings, signalled' => $ann("SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'secret of ann'"),
    'errors' => $ann('SELECT secret_of_ann'),
    'errors of a prepared statement' => $params('SELECT secret_of_ann'),
    'errors, seen first' => $bob($ann('SELECT secret_of_ann'), ['query', ['SHOW ERRORS']]),
    'diagnostics' => $bob(
        $ann('SELECT secret_of_ann'),
        ['query', ['GET DIAGNOSTICS CONDITION 1 @other = MESSAGE_TEXT']],
    ),
    'sequence' => $ann('SELECT NEXTVAL(tickets)'),
    'sequence, other notation' => $ann('SELECT NEXT VALUE FOR tickets'),
    'sequence in a view' => $ann('SELECT * FROM next_ticket'),
    'sequence in a default' => $ann('INSERT INTO numbered (v) VALUES (1)'),
    'sequence in a default, updated' => $ann('UPDATE numbered SET n = DEFAULT'),
    'variable in a default' => $ann("INSERT INTO noted (v) VALUES ('ann')"),
    'variable in a generated column' => $ann('SELECT n FROM computed'),
    'sequence in a condition' => $ann('SELECT 1 FROM flavours WHERE NEXTVAL(tickets) < 0'),

    // Temporary objects, names.
    'temporary table created' => $ann('CREATE TEMPORARY TABLE mine (n int)'),
    'temporary table created from a select' => $ann('CREATE OR REPLACE TEMPORARY TABLE mine AS SELECT 1'),
    'temporary table created in a comment' => $ann('CREATE /*! TEMPORARY */ TABLE mine (n int)'),
    'temporary table in front of another' => $bob(
        $ann('CREATE TEMPORARY TABLE flavours (n int, flavour text)'),
        ['query', ['SELECT * FROM flavours']],
    ),
    'insert into temporary table' => $rich("INSERT INTO basket (item) VALUES ('of ann')"),
    'insert into temporary table, qualified' => $rich("INSERT INTO `{database}`.`basket` (item) VALUES ('of ann')"),
    'insert into temporary table by parameter' => ['boot' => 'rich']
        + $params('INSERT INTO basket (item) VALUES (?)', 'of ann'),
    'replace in temporary table' => $rich("REPLACE INTO basket VALUES (1, 'of ann')"),
    'insert into temporary table, rolled back' => $rich(
        'BEGIN',
        "INSERT INTO basket (item) VALUES ('of ann')",
        'ROLLBACK',
    ),
    'update of temporary table' => $rich("UPDATE basket SET item = 'of ann'"),
    'update of temporary table in a join' => $rich(
        "UPDATE flavours, basket SET basket.item = 'of ann' WHERE flavours.n = basket.n",
    ),
    'delete from temporary table' => $rich('DELETE FROM basket'),
    'delete from temporary table in a join' => $rich('DELETE basket FROM basket JOIN flavours USING (n)'),
    'truncate of temporary table' => $rich('TRUNCATE basket'),
    'temporary table dropped' => $rich('DROP TEMPORARY TABLE basket'),
    'temporary table altered' => $rich('ALTER TABLE basket ADD more int'),
    'prepared with SQL' => $ann("PREPARE own_sql FROM 'SELECT ''secret of ann'''"),

    // Processes.
    'variable in a grandchild' => $hidden + $bob(
        ['ann' => [['daemon', [['query', ["SET @who = 'secret of ann'"]]]]]],
        ['await', []],
    ),

    // Results and transactions that stay open.
    'result left open' => ['ann' => [['half', ["SELECT 'secret of ann' UNION ALL SELECT 'more of ann'"]]]],
    'transaction left open' => $ann('BEGIN', "INSERT INTO cups (who) VALUES ('ann')"),
    'transaction left open by a method' => ['ann' => [
        ['begin', []], ['query', ["INSERT INTO cups (who) VALUES ('ann')"]]]],
    'read-only transaction left open' => $ann('START TRANSACTION READ ONLY', 'SELECT * FROM flavours'),
    'commit and chain' => $ann('BEGIN', 'COMMIT AND CHAIN'),
    'distributed transaction left open' => $ann("XA START 'ann'"),
];
