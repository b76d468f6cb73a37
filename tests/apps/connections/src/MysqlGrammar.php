<?php

declare(strict_types=1);

namespace Connections;

/** Random visits to MySQL: plain statements, statements that change the session, and everything
 * between them. */
final class MysqlGrammar
{
    private const SPACES = [' ', ' ', ' ', "\n", "\t", ' /* a */ ', " -- a\n", " # a\n", ' /*! */ '];

    /** Expressions that change the session, for the value %s. */
    private const CHANGES = [
        "@who := '%s'", "(@who := '%s')", "note('%s')", "`note`('%s')", "calm('%s')",
        "GET_LOCK('{database}', 0) + LENGTH('%s')", "take(CONCAT('{database}', LEFT('%s', 0)))",
        "LAST_INSERT_ID(50 + LENGTH('%s'))", 'NEXTVAL(tickets)', "(SELECT who FROM setter)",
        "(SELECT who FROM locker)", "1 + '%s'", "CAST('%s' AS int)", '/*! @who := */ 5',
        "BENCHMARK(1, @who := '%s')", 'RELEASE_ALL_LOCKS()',
    ];

    private const PLAIN = [
        "UPPER('%s')", "CONCAT('%s', 'x')", "LENGTH('%s')", "COALESCE(NULL, '%s')", "'\\'%s'", "'''%s'", "\"%s\"",
        '@@autocommit', 'LAST_INSERT_ID()', 'FOUND_ROWS()', 'ROW_COUNT()', "'-- %s'", "'/* %s'", "'%s' LIKE 'a%%'",
        "IF(1 > 2, '%s', 'a')", '@@warning_count', "JSON_OBJECT('a', '%s')",
    ];

    private const STATEMENTS = [
        'SELECT %s', 'SELECT %s', 'SELECT %s', 'SELECT 1 FROM flavours WHERE (%s) IS NOT NULL', 'VALUES (%s)',
        'WITH a AS (SELECT %s AS x) SELECT x FROM a', 'SELECT n FROM flavours ORDER BY (%s), n',
        'SELECT a.n FROM flavours a JOIN flavours b ON a.n = b.n AND (%s) <> 5 ORDER BY 1',
        'SELECT 1 UNION ALL SELECT LENGTH(%s)', 'DO %s', 'SELECT SQL_CALC_FOUND_ROWS (%s) FROM flavours LIMIT 1',
        'INSERT IGNORE INTO flavours SELECT 3, (%s)', 'UPDATE flavours SET flavour = (%s) WHERE n = 2',
        'DELETE FROM flavours WHERE n = 3 OR (%s) IS NULL', 'REPLACE INTO flavours VALUES (4, (%s))',
        'INSERT INTO flavours VALUES (1, 1) ON DUPLICATE KEY UPDATE flavour = (%s)',
        'INSERT INTO cups (who) VALUES ((%s))', 'INSERT INTO cups (who) VALUES ((%s)) RETURNING n',
        "SELECT (%s) INTO @other", 'BEGIN NOT ATOMIC DO (%s); END', 'EXPLAIN SELECT %s',
    ];

    private const OTHERS = [
        'INSERT INTO watched VALUES (1)', 'INSERT INTO locked VALUES (1)', "CALL note_procedure('a')",
        'CALL give(@who)', 'SELECT who FROM setter', "SET @who = 'a'", "SET @`who` = 'a'", 'SET autocommit = 0',
        "SET sql_mode = ''", "SET NAMES latin1", 'SET insert_id = 70', 'SET last_insert_id = 70',
        'SHOW WARNINGS', 'SHOW COUNT(*) WARNINGS', 'SELECT FOUND_ROWS()', 'SELECT ROW_COUNT()',
        'SELECT LAST_INSERT_ID()', 'SELECT @who', 'SELECT * FROM flavours ORDER BY n', 'SELECT n FROM flavours LIMIT 1',
        'SELECT COUNT(*) FROM cups', 'DELETE FROM cups', 'UPDATE flavours SET flavour = CONCAT(flavour, 1)',
        'INSERT INTO flavours VALUES (1, 1)', 'SELECT nonsense', 'DROP TABLE IF EXISTS none', 'SELECT LASTVAL(tickets)',
        'CREATE TEMPORARY TABLE mine (n int)', 'CREATE TEMPORARY TABLE flavours (n int, flavour text)',
        'DROP TEMPORARY TABLE IF EXISTS mine', 'LOCK TABLES flavours READ', 'UNLOCK TABLES', 'HANDLER flavours OPEN',
        "PREPARE own_sql FROM 'SELECT 1'", 'EXECUTE own_sql', 'DEALLOCATE PREPARE own_sql', 'USE information_schema',
        'GET DIAGNOSTICS @who = NUMBER', "SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'a'", 'BEGIN', 'COMMIT',
        'ROLLBACK', 'SAVEPOINT s', 'ROLLBACK TO SAVEPOINT s', 'COMMIT AND CHAIN', 'START TRANSACTION READ ONLY',
        'SET TRANSACTION READ ONLY', 'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
        "EXECUTE IMMEDIATE 'SET @who = 5'", "IF 1 THEN SET @who = 'a'; END IF", 'SELECT * FROM cups FOR UPDATE',
    ];

    private const OTHERS_RICH = [
        "INSERT INTO basket (item) VALUES ('a')", 'TRUNCATE basket', 'DELETE FROM basket', "UPDATE basket SET item = 'a'",
        'SELECT * FROM basket ORDER BY n', "REPLACE INTO basket VALUES (1, 'a')", "EXECUTE sql_set USING 'a'",
        'DELETE basket FROM basket JOIN flavours USING (n)', 'DROP TEMPORARY TABLE basket',
        "SELECT RELEASE_LOCK('{database}.boot')", "EXECUTE sql_echo USING 'a'", 'DEALLOCATE PREPARE sql_echo',
        "INSERT INTO {database}.basket (item) SELECT flavour FROM flavours",
    ];

    /** Whether the former visit has left a process. */
    private bool $awaits = false;

    public function __construct(
        private readonly Draw $draw,
        private readonly string $driver,
        private readonly bool $is_rich,
    ) {
    }

    /** @return list<array{string, mixed}> */
    public function visit(): array
    {
        $operations = [];
        for ($i = $this->draw->number(1, 6); $i > 0; $i--) {
            $operations[] = $this->operation();
        }
        if ($this->draw->once(8)) {
            $operations[] = ['end', [$this->draw->one(['exit', 'exception', 'fatal'])]];
        }
        if ($this->awaits) {
            array_unshift($operations, ['await', []]);
        }
        $this->awaits = $this->draw->once(20);
        if ($this->awaits) {
            // It shares the connection with every later operation of its visit.
            $operations = [...array_filter($operations, static fn ($one) => $one[0] !== 'end'), ['daemon', [['query', ["SET @who = 'of a daemon'"]]]]];
        }

        return $operations;
    }

    private function operation(): array
    {
        $draw = $this->draw;
        $verbs = ['query', 'query', 'query', 'params', 'params', 'above', 'above', 'above', 'own', 'begin',
            'commit', 'rollBack', 'half', 'autocommit'];
        $more = match ($this->driver) {
            'mysqli' => ['longData', 'longData', 'cursor', 'reset', 'charset', 'run', 'changeUser'],
            'pdo_mysql' => ['lastId'],
            'pdo_mysql_emulated' => ['lastId', 'run'],
        };
        $verb = $draw->one([...$verbs, ...$more]);
        $word = $draw->one(['ann', 'bob', 'eve']);

        return match ($verb) {
            'query' => ['query', [$this->statement()]],
            'run' => ['run', [$this->statement() . '; ' . $this->statement()]],
            'half' => ['half', [$draw->one(['SELECT n FROM flavours', "SELECT '$word' UNION ALL SELECT 'more'"])]],
            'params' => ['params', $this->parameters($word)],
            'above' => ['execute', $draw->one([['echo', [$word]], ['add', [$draw->number(0, 9), 1]],
                ['add', [1, $word]], ['types', [$word, $word]], ['types', [1.5, $word]], ['types', [null, 1]], ['bound', [$word, 1]],
                ['fresh', [$word, 1]], ['fresh', [1, $word]], ['set', [$word]], ['lock', ['{database}']],
                ['insert', [$word]], ['note', [$word]], ['watched', [1]], ['flavour', [$draw->number(1, 3)]],
                ['flavours', [0]], ...$this->is_rich ? [['pick', [$word]]] : []])],
            'own' => $draw->one([['execute', ['own', [1]]], ['close', ['own']], ['close', ['echo']],
                ['prepare', ['own', 'SELECT ? + 1']], ['prepare', ['own', $this->statement()]]]),
            'begin', 'commit', 'rollBack', 'changeUser', 'lastId' => [$verb, []],
            'autocommit' => ['autocommit', [$draw->once(2)]],
            'charset' => ['charset', [$draw->one(['latin1', 'utf8mb4'])]],
            'longData' => ['longData', [$draw->one(['echo', 'types', 'fresh']), 0, $word, $draw->once(3)]],
            'cursor' => ['cursor', ['flavours', [0]]],
            'reset' => ['reset', [$draw->one(['echo', 'types'])]],
        };
    }

    private function parameters(string $word): array
    {
        if ($this->draw->once(2)) {
            return [$this->statement(), []];
        }

        return $this->draw->one([
            ['SELECT ?', [$word]], ['INSERT INTO cups (who) VALUES (?)', [$word]], ['SET @who = ?', [$word]],
            ['SELECT @who := ?', [$word]], ['SELECT note(?)', [$word]], ['SELECT 1 + ?', [$word]],
            ['UPDATE flavours SET flavour = ? WHERE n = ?', [$word, 1]], ['SELECT GET_LOCK(?, 0)', ['{database}']],
            ['INSERT INTO watched VALUES (?)', [1]], ['SELECT COUNT(*) FROM flavours WHERE n > ?', [0]],
            ['SELECT LAST_INSERT_ID(?)', [5]], ['DELETE FROM flavours WHERE n > ?', [2]],
        ]);
    }

    private function statement(): string
    {
        $draw = $this->draw;
        if ($draw->once(3)) {
            $text = $draw->one([...self::OTHERS, ...$this->is_rich ? self::OTHERS_RICH : []]);
        } else {
            $expression = $draw->one($draw->once(2) ? self::PLAIN : self::CHANGES);
            $expression = str_replace(['%s', '%%'], [$draw->one(['ann', 'bob']), '%'], $expression);
            $text = str_replace('%s', $expression, $draw->one(self::STATEMENTS));
        }
        if ($draw->once(4)) {
            $text = $draw->one(["\n", ' ', "\t", '/* a */ ']) . $text;
        }
        if ($draw->once(4)) {
            $text = preg_replace('/^(\s*\w+) /', '$1' . $draw->one(self::SPACES), $text);
        }

        return $text;
    }
}
