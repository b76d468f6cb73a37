<?php

declare(strict_types=1);

namespace Samovar\Bench\Databases;

use PDO;

/** Connects to the database that the scenario selects. The scenario also selects a query that
 * takes 10 ms or a plain one. */
function connect(bool $persistent = false): PDO
{
    $kind = getenv('BENCH_DATABASE') === 'pgsql' ? 'PG' : 'MYSQL';

    return new PDO(getenv("BENCH_{$kind}_DSN"), getenv("BENCH_{$kind}_USER"), null, [
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
        PDO::ATTR_PERSISTENT => $persistent,
    ]);
}

function database(bool $persistent = false): PDO
{
    static $database = null;

    return $database ??= connect($persistent);
}

/** The column has a name: MariaDB's SLEEP() would otherwise return its own result. */
function question(int $number): string
{
    return match (getenv('BENCH_QUESTION')) {
        'wait-pgsql' => "SELECT $number AS number, pg_sleep(0.01)",
        'wait-mysql' => "SELECT $number AS number, SLEEP(0.01)",
        default => "SELECT $number AS number",
    };
}

function ask(PDO $database, int $number): string
{
    return $database->query(question($number))->fetchColumn() . "\n";
}

function answer(PDO $database): string
{
    return ask($database, 1) . ask($database, 2) . "answered\n";
}
