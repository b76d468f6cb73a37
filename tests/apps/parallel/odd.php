<?php

declare(strict_types=1);

/*
 * A visitor whose request ends in some way while tasks are in progress. Each result must be the
 * visitor's own, and uncommitted data must not exist. tests/suite/parallel/odd.rs mixes these
 * requests at random.
 */

/** The only connections that a resident worker keeps. */
function odd_pool(): Samovar\Pool
{
    static $pool;

    return $pool ??= new Samovar\Pool(fn () => odd_database(), size: 2, maxUses: 50, idle: 3600);
}

function odd_redis_pool(): Samovar\Pool
{
    static $pool;

    return $pool ??= new Samovar\Pool(fn () => connect_redis(), size: 2, idle: 3600);
}

function odd_database(): PDO
{
    $db = connect_pgsql();
    $db->exec("SET application_name = 'odd'");

    return $db;
}

/** The result of each must belong to this visitor. */
function odd_works(): array
{
    return [
        'open' => function (string $who): string {
            $db = odd_database();
            $db->beginTransaction();
            $db->exec("INSERT INTO odd VALUES ('never $who')");
            $answer = $db->query("SELECT '$who' FROM pg_sleep(0.01)")->fetchColumn();
            Samovar\delay(30);

            return $answer;
        },
        'kept' => function (string $who): string {
            $db = odd_database();
            $db->beginTransaction();
            $db->exec("INSERT INTO odd VALUES ('$who')");
            $db->query('SELECT pg_sleep(0.001)');
            $db->commit();
            file_put_contents(getenv('ODD'), "$who\n", FILE_APPEND | LOCK_EX);

            return $who;
        },
        'pool' => fn (string $who) => odd_pool()->use(fn (PDO $db) => $db->query("SELECT '$who' FROM pg_sleep(0.004)")->fetchColumn()),
        'pool open' => fn (string $who) => odd_pool()->use(function (PDO $db) use ($who): string {
            $db->beginTransaction();
            $db->exec("INSERT INTO odd VALUES ('never $who')");
            $answer = $db->query("SELECT '$who' FROM pg_sleep(0.003)")->fetchColumn();
            $db->rollBack();

            return $answer;
        }),
        'mysql' => function (string $who): string {
            $db = connect_mysql();
            $db->beginTransaction();
            $db->exec("INSERT INTO odd.odd VALUES ('never $who')");

            return $db->query("SELECT '$who', SLEEP(0.01)")->fetchColumn();
        },
        'redis' => fn (string $who) => odd_redis_pool()->use(function (Redis $redis) use ($who): string {
            $redis->rawCommand('BLPOP', 'nothing', '0.005');

            return $redis->echo($who);
        }),
        'deaf' => fn (string $who) => ask_curl('http://' . getenv('DEAF') . '/') ?: $who,
        'fiber' => function (string $who): string {
            $fiber = new Fiber(fn () => file_get_contents('http://' . getenv('DEAF') . '/') ?: Fiber::suspend());
            $fiber->start();

            return $who;
        },
        'child' => function (string $who): string {
            $child = proc_open(['cat'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
            fwrite($pipes[0], "$who\n");

            return trim(fgets($pipes[1])) . proc_terminate($child) * 0;
        },
        'buffer' => function (string $who): string {
            ob_start();
            echo $who;
            usleep(4000);

            return ob_get_clean();
        },
        'finally' => function (string $who): string {
            try {
                usleep(8000);
            } finally {
                odd_redis_pool()->stats();
                usleep(100);
            }

            return $who;
        },
        'lock' => function (string $who): string {
            $file = fopen(getenv('ODD') . '.lock', 'c');
            flock($file, LOCK_EX);
            usleep(500);

            return $who;
        },
        'nested' => fn (string $who) => implode('', Samovar\parallel([fn () => usleep(3000) ?? $who, fn () => usleep(500) ?? ''])),
    ];
}

/** Ends the request, in a task or in the code outside tasks. */
function odd_end(string $how): void
{
    match ($how) {
        'exit' => exit,
        'fatal' => trigger_error('ended', E_USER_ERROR),
        'memory' => str_repeat('x', 1 << 30),
        'exception' => throw new Exception('ended'),
        'time' => posix_kill(getmypid(), SIGPROF) && odd_spin(),
        'kill' => posix_kill(getmypid(), SIGKILL),
        'abort' => until_aborted(),
        default => null,
    };
}

function odd_spin(): never
{
    while (true) {
    }
}

function odd(string $who, string $how, bool $inTask, array $works, int $after): void
{
    $all = odd_works();
    foreach ($works as $i => $work) {
        $tasks[] = Samovar\async(function () use ($all, $work, $who, $i) {
            $answer = rtrim($all[$work]("$who-$i"), '0');
            $answer === rtrim("$who-$i", '0') || error_log("CROSSED: $work of $who-$i was told $answer");
        });
    }
    Samovar\delay($after / 1e6);
    if ($how === 'cancel') {
        array_walk($tasks, fn (Samovar\Task $task) => $task->cancel());
    } elseif ($how === 'await') {
        caught(fn () => $tasks[0]->await(0.02));
    }
    $inTask ? Samovar\parallel([fn () => Samovar\delay(0.0005) ?? odd_end($how)]) : odd_end($how);
    echo "\"$who\"";
}

/** Uses as many connections as the pools keep. All of them must work. */
function odd_rest(): array
{
    $say = fn (string $word) => odd_pool()->use(fn (PDO $db) => $db->query("SELECT '$word' FROM pg_sleep(0.01)")->fetchColumn());
    $echo = fn (string $word) => odd_redis_pool()->use(fn (Redis $redis) => $redis->rawCommand('BLPOP', 'nothing', '0.01') ?: $redis->echo($word));

    return Samovar\parallel([
        fn () => $say('a'), fn () => $say('b'), fn () => $say('c'), fn () => $echo('d'), fn () => $echo('e'), fn () => $echo('f'),
    ]);
}

/**
 * Returns the state of the databases: other connections, transactions, rows that must not exist,
 * and all other rows.
 */
function odd_seen(): array
{
    $pg = connect_pgsql();
    $my = connect_mysql();
    $one = fn (PDO $db, string $query) => (int) $db->query($query)->fetchColumn();

    return [
        'connections' => $one($pg, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'odd'"),
        'transactions' => $one($pg, "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%'"),
        'my connections' => $one($my, 'SELECT COUNT(*) FROM information_schema.processlist') - 1,
        'never' => $one($pg, "SELECT count(*) FROM odd WHERE who LIKE 'never%'") + $one($my, 'SELECT COUNT(*) FROM odd.odd'),
        'rows' => $pg->query('SELECT who FROM odd')->fetchAll(PDO::FETCH_COLUMN),
    ];
}

function odd_prepare(): array
{
    connect_pgsql()->exec('CREATE TABLE IF NOT EXISTS odd (who TEXT)');
    connect_mysql()->exec('CREATE DATABASE IF NOT EXISTS odd');
    connect_mysql()->exec('CREATE TABLE IF NOT EXISTS odd.odd (who TEXT) ENGINE=InnoDB');

    return [];
}
