<?php

/** Each visit of Ann changes the state of her connection to SQLite. */

declare(strict_types=1);

$query = static fn (string ...$sql): array => array_map(static fn ($one) => ['query', [$one]], $sql);
$ann = static fn (string ...$sql): array => ['ann' => $query(...$sql)];
$rich = static fn (string ...$sql): array => ['boot' => 'rich', 'ann' => $query(...$sql)];

return [
    'last row' => $ann(
        "INSERT INTO cups VALUES (900, 'ann')",
        'DELETE FROM cups WHERE n = 900',
        'DELETE FROM sqlite_sequence',
    ),
    'changes' => $ann('UPDATE flavours SET flavour = flavour'),
    'temporary table created' => $ann('CREATE TEMP TABLE mine (n)'),
    'setting' => $ann('PRAGMA foreign_keys = ON'),
    'setting of writes' => $ann('PRAGMA query_only = ON'),
    'database attached' => $ann("ATTACH ':memory:' AS own"),
    'database detached' => $rich('DETACH side'),
    'transaction left open' => ['ann' => [
        ['begin', []], ['query', ["INSERT INTO cups (who) VALUES ('ann')"]]]],
    'transaction left open, immediate' => $ann('BEGIN IMMEDIATE', "INSERT INTO cups (who) VALUES ('ann')"),
    'savepoint left open' => $ann('SAVEPOINT s', "INSERT INTO cups (who) VALUES ('ann')"),
    'result left open' => ['ann' => [['half', ['SELECT n FROM flavours']], ['end', ['exit']]]],
    'insert into attached memory' => $rich("INSERT INTO side.notes VALUES ('secret of ann')"),
    'insert into temporary table' => $rich("INSERT INTO basket VALUES (900, 'of ann')"),
    'insert of many rows into temporary table' => $rich(
        "INSERT INTO basket SELECT n + 1000, replace(item, 'boot', 'ann!') FROM basket",
    ),
    'update of temporary table' => $rich("UPDATE basket SET item = 'of ann'"),
    'update of temporary table, same length' => $rich("UPDATE basket SET item = replace(item, 'boot', 'ann!')"),
    'update of temporary table by trigger' => $rich(
        "INSERT INTO flavours VALUES (51, 'of ann')",
        'DELETE FROM flavours WHERE n = 51',
    ),
    'delete from temporary table' => $rich('DELETE FROM basket WHERE n > 10'),
    'temporary table dropped' => $rich('DROP TABLE basket'),
    'temporary table in a transaction left open' => $rich('BEGIN', "UPDATE basket SET item = 'of ann'"),
];
