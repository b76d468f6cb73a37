<?php

declare(strict_types=1);

namespace Samovar\Bench\Waits;

use PDO;

/** The connection, kept as long as the process keeps its memory. The first request that needs it
 * opens it. */
function database(): PDO
{
    static $database = null;

    return $database ??= new PDO(getenv('BENCH_PG_DSN'), getenv('BENCH_PG_USER'), null, [
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
    ]);
}

/** Two queries, one after the other, each with a result after 10 ms. */
function answer(): string
{
    $text = '';
    foreach ([1, 2] as $number) {
        $text .= database()->query("SELECT $number AS number, pg_sleep(0.01)")->fetchColumn() . "\n";
    }

    return $text . "answered\n";
}
