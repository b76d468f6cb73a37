<?php

declare(strict_types=1);

namespace Connections;

/** Random visits to PostgreSQL: plain statements, statements that change the session, and everything
 * between them. */
final class PgsqlGrammar
{
    private const SPACES = [' ', ' ', ' ', "\n", "\t", ' /* a */ ', " -- a\n", '  '];

    /** Expressions that change the session, for the value %s. */
    private const CHANGES = [
        "set_config('app.who', '%s', false)",
        "pg_catalog.set_config('app.who', '%s', false)",
        "U&\"set\\005fconfig\"('app.who', '%s', false)",
        "\"set_config\"('app.who', '%s', false)",
        "note('%s')",
        "note_sql('%s')",
        "note_stable('%s')",
        "note_immutable('%s')",
        "('%s'::text @@@ '')",
        "CAST('%s'::text AS leaf)::text",
        "'%s'::text::leaf::text",
        "(1::judged)::text || '%s'",
        "note_all('%s')",
        "pg_try_advisory_lock(length('%s'))::text",
        "pg_advisory_lock_shared(length('%s'))::text",
        "nextval('tickets')::text || '%s'",
        "setval('tickets', 5 + length('%s'))::text",
        "set_limit(0.5)::text || '%s'",
        "setseed(0.5)::text || '%s'",
        "query_to_xml('SELECT set_config(''app.who'', ''%s'', false)', true, true, '')::text",
        "query_to_xml_and_xmlschema('SELECT set_config(''app.who'', ''%s'', false)', true, true, '')::text",
        "table_to_xml('setter', true, true, '')::text || '%s'",
        "(SELECT max(word) FROM ts_stat('SELECT set_config(''app.who'', ''%s'', false)::tsvector'))",
        "(SELECT who || '%s' FROM setter)",
        "(SELECT who || '%s' FROM setter_of_setter)",
    ];

    private const CHANGES_RICH = [
        "nextval('turns')::text || '%s'",
        "nextval('basket_n_seq')::text || '%s'",
        "(SELECT who || '%s' FROM temporary_setter)",
        "fill()::text || '%s'",
        "pg_advisory_unlock(7)::text || '%s'",
        "pg_notify('news', '%s')::text",
    ];

    private const PLAIN = [
        "upper('%s')", "'%s' || 'x'", "length('%s')::text", "coalesce(NULL, '%s')", "'%s'::varchar(9)",
        "(SELECT max(flavour) || '%s' FROM flavours)", "to_char(5, '999') || '%s'", "md5('%s')",
        "current_database() || '%s'", "CASE WHEN 1 > 2 THEN '%s' ELSE 'a' END", "E'\\'%s'", "'\\%s'",
        "$$'%s$$", "'-- ' || '%s'", "json_build_object('a', '%s')::text", "'%s' LIKE 'a%%'",
    ];

    /** Statements around an expression. */
    private const STATEMENTS = [
        'SELECT %s', 'SELECT %s', 'SELECT %s', 'SELECT 1 WHERE (%s)::text IS NOT NULL', 'VALUES (%s)',
        'WITH a AS (SELECT %s AS x) SELECT x FROM a',
        'WITH a AS MATERIALIZED (SELECT %s AS x) SELECT count(*), max(x::text) FROM a',
        'SELECT n FROM flavours ORDER BY (%s)::text, n',
        'SELECT a.n FROM flavours a JOIN flavours b ON a.n = b.n AND (%s)::text <> \'none\'',
        'SELECT x FROM (SELECT (%s)::text AS x) s GROUP BY x HAVING count(*) > 0',
        'SELECT * FROM flavours f, LATERAL (SELECT (%s)::text AS x) s ORDER BY f.n',
        'SELECT 1 UNION ALL SELECT length((%s)::text)',
        'INSERT INTO flavours SELECT 3, (%s)::text WHERE NOT EXISTS (SELECT 1 FROM flavours WHERE n = 3)',
        'UPDATE flavours SET flavour = (%s)::text WHERE n = 2',
        'DELETE FROM flavours WHERE n = 3 OR (%s)::text IS NULL',
        'INSERT INTO flavours VALUES (1, \'\') ON CONFLICT (n) DO UPDATE SET flavour = (%s)::text',
        'INSERT INTO flavours VALUES (5, \'five\') ON CONFLICT DO NOTHING RETURNING (%s)::text',
        'MERGE INTO flavours f USING (VALUES (1)) s (n) ON f.n = s.n WHEN MATCHED THEN UPDATE SET flavour = (%s)::text',
        'EXPLAIN (COSTS off) SELECT (%s)::text', 'EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) SELECT (%s)::text',
        'INSERT INTO cups (who) VALUES ((%s)::text)', 'COPY (SELECT %s) TO STDOUT',
        'DO $x$ BEGIN PERFORM %s; END $x$', 'SELECT 1; SELECT %s',
    ];

    /** Whole statements. */
    private const OTHERS = [
        'INSERT INTO watched VALUES (1)', 'INSERT INTO watched_late VALUES (1)',
        'UPDATE parents SET n = n + 1', 'INSERT INTO defaults (n) VALUES (1)',
        'INSERT INTO checked VALUES (1)', 'INSERT INTO generated (n) VALUES (1)',
        "INSERT INTO indexed VALUES ('a')", 'INSERT INTO ruled VALUES (1)', 'TABLE setter',
        "CALL note_procedure('a')", 'DEALLOCATE {echo}', "\n DEALLOCATE {echo}", "DEALLOCATE\n{echo}",
        'DEALLOCATE "{echo}"', "DEALLOCATE\tALL", 'DEALLOCATE ALL', 'DEALLOCATE own', 'deallocate prepare {echo}',
        "SET app.who = 'a'", "SET LOCAL app.who = 'a'", 'RESET application_name', 'SET search_path = pg_catalog',
        "UPDATE pg_settings SET setting = '9MB' WHERE name = 'work_mem'", 'DISCARD TEMP', 'DISCARD ALL',
        'CREATE TEMP TABLE mine (n int)', 'SELECT 1 AS n INTO TEMP mine', 'DROP TABLE IF EXISTS mine',
        'INSERT INTO mine VALUES (1)', 'LISTEN offers', 'UNLISTEN *', "NOTIFY offers, 'a'",
        'DECLARE c CURSOR WITH HOLD FOR SELECT 1', 'FETCH c', 'CLOSE c', 'PREPARE mine AS SELECT 1',
        'EXECUTE mine', 'SELECT lastval()', 'SHOW app.who', 'SELECT nonsense', 'SELECT 1/0',
        'SELECT count(*) FROM cups', 'SELECT * FROM flavours ORDER BY n', 'SELECT pg_advisory_unlock_all()',
        'SAVEPOINT s', 'ROLLBACK TO s', 'RELEASE s', 'COMMIT AND CHAIN', 'ROLLBACK', 'COMMIT', 'BEGIN',
        'START TRANSACTION READ ONLY', 'TRUNCATE cups', 'LOCK TABLE cups', 'SELECT * FROM cups FOR UPDATE',
    ];

    private const OTHERS_RICH = [
        "INSERT INTO basket (item) VALUES ('a')", 'TRUNCATE basket', 'TRUNCATE cups, basket', 'DELETE FROM basket',
        "UPDATE basket SET item = 'a'", 'SELECT * FROM basket ORDER BY n', 'SELECT who FROM temporary_setter',
        'FETCH 1 FROM shelf', 'MOVE 1 IN shelf', 'CLOSE shelf', "EXECUTE sql_set('a')", "EXECUTE sql_echo('a')",
        "WITH x AS (DELETE FROM pg_temp.basket WHERE n = 1 RETURNING n) SELECT count(*) FROM x",
        "NOTIFY news, 'a'", 'DROP TABLE basket', 'LOCK TABLE basket', 'SELECT count(*) FROM basket',
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
            $operations = [...array_filter($operations, static fn ($one) => $one[0] !== 'end'), ['daemon', [['execute', ['set', ['of a daemon']]]]]];
        }

        return $operations;
    }

    private function operation(): array
    {
        $draw = $this->draw;
        $verbs = ['query', 'query', 'query', 'params', 'params', 'above', 'above', 'above', 'own', 'begin',
            'commit', 'rollBack', 'notifications', 'copyIn', 'copyOut', 'run', 'name'];
        $verb = $draw->one($this->driver === 'pgsql' ? [...$verbs, 'batch', 'send', 'insertRow'] : $verbs);
        $word = $draw->one(['ann', 'bob', 'eve']);

        return match ($verb) {
            'query', 'run', 'send' => [$verb, [$this->statement()]],
            'params' => ['params', $this->parameters($word)],
            'above' => ['execute', $draw->one([['echo', [$word]], ['add', [$draw->number(0, 9), 1]],
                ['set', [$word]], ['lock', [$draw->number(1, 9)]], ['insert', [$word]], ['ticket', []],
                ['note', [$word]], ['view', []], ['watched', [1]], ['flavour', [$draw->number(1, 3)]],
                ...$this->is_rich ? [['pick', [$word]], ['turn', []]] : []])],
            'own' => $draw->one([['execute', ['own', [1]]], ['close', ['own']],
                ['prepare', ['own', 'SELECT $1::int']], ['prepare', ['own', $this->statement()]]]),
            'name' => $draw->one([['close', ['echo']], ['close', ['flavour']],
                ['prepare', ['echo', "SELECT '$word' || $1::text"]], ['prepare', ['flavour', 'SELECT $1::text']]]),
            'begin', 'commit', 'rollBack', 'notifications' => [$verb, []],
            'copyIn' => ['copyIn', $draw->one([['cups (who)', [$word]], ['watched', ['1']], ['flavours', ["7\t$word"]],
                ['flavours', ['x']], ...$this->is_rich ? [['basket', ["8\t$word"]]] : []])],
            'copyOut' => ['copyOut', $draw->one([['flavours'], ['(SELECT * FROM setter)']])],
            'insertRow' => ['insertRow', $draw->one([['watched', ['n' => 1]], ['cups', ['who' => $word]]])],
            'batch' => ['batch', [$this->batch($word)]],
        };
    }

    private function parameters(string $word): array
    {
        if ($this->draw->once(2)) {
            return [$this->statement(), []];
        }

        return $this->draw->one([
            ['SELECT $1::text', [$word]], ['INSERT INTO cups (who) VALUES ($1)', [$word]],
            ["SELECT set_config('app.who', $1, false)", [$word]], ['SELECT note($1)', [$word]],
            ['UPDATE flavours SET flavour = $1 WHERE n = $2', [$word, 1]],
            ['SELECT pg_try_advisory_lock($1::int)', [3]], ['INSERT INTO watched VALUES ($1)', [1]],
            ['SELECT count(*) FROM flavours WHERE n > $1', [0]], ['SELECT 1 / $1::int', [0]],
            ['SELECT nextval($1::text::regclass)', [$this->is_rich ? 'turns' : 'tickets']],
        ]);
    }

    private function batch(string $word): array
    {
        $bind = static fn (string $name): array =>
            ['B', "~$name~~~~\1~~~" . chr(strlen($word)) . "$word~~"];
        $messages = [
            ['P', "own~SELECT \$1::text~~~"], ['P', "own~SELECT '$word' || \$1::text~~~"],
            ['P', "~SELECT \$1::text~~~"], ['P', "~SELECT nonsense~~~"], ['P', "echo~SELECT '$word' || \$1::text~~~"],
            ['C', 'Secho~'], ['C', 'Sown~'], ['C', 'Sset~'], ['D', 'Sown~'], ['D', 'Snone~'],
            $bind('own'), $bind('echo'), $bind('set'), $bind(''), ['E', '~~~~~'], ['S', ''], ['H', ''],
        ];
        $chosen = [];
        for ($i = $this->draw->number(1, 4); $i > 0; $i--) {
            $chosen[] = $this->draw->one($messages);
        }

        return $chosen;
    }

    private function statement(): string
    {
        $draw = $this->draw;
        if ($draw->once(3)) {
            $text = $draw->one([...self::OTHERS, ...$this->is_rich ? self::OTHERS_RICH : []]);
        } else {
            $changes = [...self::CHANGES, ...$this->is_rich ? self::CHANGES_RICH : []];
            $expression = sprintf($draw->one($draw->once(2) ? self::PLAIN : $changes), $draw->one(['ann', 'bob']));
            $text = str_replace('%s', $expression, $draw->one(self::STATEMENTS));
        }
        // A driver that reads COPY from a statement reads for ever.
        $text = str_starts_with($text, 'COPY') ? str_replace('STDOUT', "'/dev/null'", $text) : $text;
        if ($draw->once(4)) {
            $text = $draw->one(["\n", '(', ' ', "\t", '/* a */ ']) . $text;
            $text = $text[0] === '(' ? "$text)" : $text;
        }
        if ($draw->once(4)) {
            $text = preg_replace('/^(\s*\w+) /', '$1' . $draw->one(self::SPACES), $text);
        }

        return $draw->once(6) ? "$text;" : $text;
    }
}
