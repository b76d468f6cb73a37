<?php

declare(strict_types=1);

namespace Connections;

/** Random visits to SQLite. */
final class LiteGrammar
{
    private const STATEMENTS = [
        "INSERT INTO cups (who) VALUES ('a')", 'SELECT last_insert_rowid()', 'SELECT changes()',
        'SELECT * FROM flavours ORDER BY n', "UPDATE flavours SET flavour = flavour || '!'", 'DELETE FROM cups',
        "INSERT OR REPLACE INTO flavours VALUES (51, 'fifty')", 'CREATE TEMP TABLE mine (n)', 'INSERT INTO mine VALUES (1)',
        'DROP TABLE IF EXISTS temp.mine', 'PRAGMA foreign_keys = ON', 'PRAGMA query_only = ON', 'PRAGMA synchronous = 2',
        "ATTACH ':memory:' AS own", 'DETACH own', 'BEGIN', 'BEGIN IMMEDIATE', 'COMMIT', 'ROLLBACK', 'SAVEPOINT s',
        'RELEASE s', 'SELECT count(*) FROM cups', 'SELECT nonsense', 'PRAGMA case_sensitive_like = ON', 'VACUUM',
        'CREATE TABLE IF NOT EXISTS later (n)', 'DROP TABLE IF EXISTS later', 'PRAGMA cache_size = 5',
    ];

    private const STATEMENTS_RICH = [
        "INSERT INTO basket (item) VALUES ('a')", "UPDATE basket SET item = 'ann'", 'DELETE FROM basket WHERE n > 20',
        "UPDATE basket SET item = replace(item, 'boot', 'ann!') WHERE n % 3 = 0", 'DROP TABLE basket',
        "INSERT INTO basket SELECT n + 1000, item FROM basket", 'SELECT sum(length(item)) FROM basket',
        "INSERT INTO side.notes VALUES ('a')", 'DETACH side', 'CREATE INDEX temp.items ON basket (item)',
        'SELECT count(*) FROM side.notes', 'SELECT item FROM basket ORDER BY item DESC LIMIT 1',
    ];

    public function __construct(private readonly Draw $draw, private readonly bool $is_rich)
    {
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

        return $operations;
    }

    private function operation(): array
    {
        $draw = $this->draw;
        $statements = [...self::STATEMENTS, ...$this->is_rich ? self::STATEMENTS_RICH : []];
        $word = $draw->one(['ann', 'bob', 'eve']);
        $verb = $draw->one(['query', 'query', 'query', 'run', 'params', 'above', 'above', 'own', 'half', 'begin',
            'commit', 'rollBack', 'lastId']);

        return match ($verb) {
            'query' => ['query', [$draw->one($statements)]],
            'run' => ['run', [$draw->one($statements) . '; ' . $draw->one($statements)]],
            'params' => ['params', $draw->one([['SELECT ?', [$word]], ['INSERT INTO cups (who) VALUES (?)', [$word]],
                ['UPDATE flavours SET flavour = ? WHERE n = ?', [$word, 1]]])],
            'above' => ['execute', $draw->one([['echo', [$word]], ['insert', [$word]], ['flavour', [2]]])],
            'own' => $draw->one([['execute', ['own', []]], ['close', ['own']], ['close', ['echo']],
                ['prepare', ['own', $draw->one($statements)]]]),
            'half' => ['half', ['SELECT n FROM flavours']],
            'begin', 'commit', 'rollBack', 'lastId' => [$verb, []],
        };
    }
}
