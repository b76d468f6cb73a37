<?php

declare(strict_types=1);

/* The connection pools of the package samovar/runtime for Doctrine and Redis. */

use Doctrine\DBAL\Configuration;
use Doctrine\DBAL\Connection;
use Doctrine\DBAL\DriverManager;
use Samovar\Runtime\Doctrine\PoolMiddleware;
use Samovar\Runtime\Redis\PooledRedis;

use function Samovar\Runtime\Doctrine\another;

require_once __DIR__ . '/../../../php/autoload.php';
require_once 'Doctrine/DBAL/autoload.php';

/**
 * One Doctrine connection for all tasks, as in an application, with a pool of three database
 * connections.
 */
final class Databases
{
    public readonly Connection $connection;

    public function __construct(public readonly string $driver, public readonly PoolMiddleware $pool)
    {
        $params = str_contains($driver, 'pgsql')
            ? ['host' => getenv('PGSQL'), 'dbname' => 'tasks', 'user' => 'postgres']
            : ['unix_socket' => getenv('MYSQL'), 'user' => 'root', 'dbname' => 'tasks'];
        $configuration = (new Configuration())->setMiddlewares([$pool]);
        $this->connection = DriverManager::getConnection(['driver' => $driver] + $params, $configuration);
        $this->connection->setNestTransactionsWithSavepoints(true);
    }

    public function isPostgres(): bool
    {
        return str_contains($this->driver, 'pgsql');
    }

    /** A slow statement that returns the ID of its database connection. */
    public function slow(): string
    {
        return $this->isPostgres()
            ? "SELECT pg_backend_pid() AS backend, CAST(:text AS text) AS text, 0 AS text FROM pg_sleep(0.05)"
            : 'SELECT CONNECTION_ID() AS backend, :text AS text, SLEEP(0.05) AS nothing';
    }

    public function table(): string
    {
        $table = "cups_{$this->driver}";
        $number = $this->isPostgres() ? 'serial' : 'integer auto_increment';
        $this->connection->executeStatement("CREATE TABLE IF NOT EXISTS $table (id $number primary key, name varchar(40))");

        return $table;
    }

    public function stats(): array
    {
        return $this->pool->stats()[0];
    }
}

/**
 * Nine tasks on the same Doctrine connection. Returns the number of database connections used and
 * of correct results.
 */
function doctrine_many(Databases $db): array
{
    $tasks = [];
    for ($i = 0; $i < 9; $i++) {
        $tasks[$i] = fn (): array => $db->connection->fetchNumeric($db->slow(), ['text' => "job $i"]);
    }
    $rows = Samovar\parallel($tasks);
    $right = array_filter($rows, fn (array $row, int $i): bool => $row[1] === "job $i", ARRAY_FILTER_USE_BOTH);

    return [count(array_unique(array_column($rows, 0))), count($right), $db->stats()];
}

/** Concurrent transactions with slow statements. Each has its own connection. */
function doctrine_transactions(Databases $db): array
{
    $table = $db->table();
    $tasks = [];
    for ($i = 0; $i < 6; $i++) {
        $tasks[$i] = function () use ($db, $table, $i): array {
            $mine = another($db->connection);
            $name = uniqid("$i-");
            try {
                $mine->transactional(function (Connection $within) use ($db, $table, $name, $i): void {
                    $within->insert($table, ['name' => $name]);
                    $within->fetchNumeric($db->slow(), ['text' => 'x']);
                    $within->insert($table, ['name' => $name]);
                    if ($i % 2 === 1) {
                        throw new DomainException('odd');
                    }
                });
            } catch (DomainException) {
            }

            return [$mine->fetchOne("SELECT count(*) FROM $table WHERE name = ?", [$name])];
        };
    }

    return [array_map(intval(...), array_column(Samovar\parallel($tasks), 0)), $db->stats()];
}

/** Each task must get the ID of its own insert. */
function doctrine_numbers(Databases $db): array
{
    $table = $db->table();
    $tasks = [];
    for ($i = 0; $i < 6; $i++) {
        $tasks[$i] = function () use ($db, $table): bool {
            $name = uniqid('', true);
            $insert = fn (Connection $on): int => (int) $on->insert($table, ['name' => $name]);
            if ($db->isPostgres()) {
                $mine = another($db->connection);
                $mine->beginTransaction();
                $insert($mine);
                $id = $mine->lastInsertId();
                $mine->commit();
            } else {
                $insert($db->connection);
                $db->connection->fetchOne('SELECT SLEEP(0.02)');
                $id = $db->connection->lastInsertId();
            }

            return $db->connection->fetchOne("SELECT name FROM $table WHERE id = ?", [$id]) === $name;
        };
    }

    return [Samovar\parallel($tasks), $db->isPostgres() ? caught(fn () => $db->connection->lastInsertId())[1] : null];
}

/**
 * A second task uses the connection while the first has a transaction. It is refused at any point,
 * and the first continues.
 */
function doctrine_shared(Databases $db): array
{
    $table = $db->table();
    $name = uniqid();
    $first = Samovar\async(function () use ($db, $table, $name): int {
        $db->connection->beginTransaction();
        $db->connection->insert($table, ['name' => $name]);
        Samovar\delay(0.1);
        $db->connection->commit();

        return (int) $db->connection->fetchOne("SELECT count(*) FROM $table WHERE name = ?", [$name]);
    });
    $second = Samovar\async(fn () => caught(fn () => $db->connection->fetchOne('SELECT 1'))[1]);
    $others = [$second->await(), caught(fn () => $db->connection->fetchOne('SELECT 1'))[1]];

    return [$others, $first->await(), $db->stats()];
}

/**
 * Two tasks start a transaction on the same Doctrine connection. At most one may succeed, and its
 * report must be correct.
 */
function doctrine_begun_twice(Databases $db): array
{
    $table = $db->table();
    $mine = another($db->connection);
    $mine->setNestTransactionsWithSavepoints(true);
    $tasks = [];
    foreach (['a', 'b'] as $one) {
        $tasks[] = Samovar\async(function () use ($db, $mine, $table, $one): array {
            $name = uniqid($one);
            $said = caught(fn () => $mine->transactional(function () use ($mine, $table, $name): void {
                $mine->insert($table, ['name' => $name]);
                Samovar\delay(0.02);
            }))[0];

            return [$said === 'returned', $db->connection->fetchOne("SELECT count(*) FROM $table WHERE name = ?", [$name]) == 1];
        });
    }
    $told = array_map(fn (Samovar\Task $task): array => $task->await(), $tasks);

    return [array_filter($told, fn (array $one): bool => $one[0] !== $one[1]), array_sum(array_column($told, 0)) <= 1];
}

/** A task that ends within its transaction leaves no data. */
function doctrine_cancelled(Databases $db): array
{
    $table = $db->table();
    $name = uniqid();
    $task = Samovar\async(function () use ($db, $table, $name): void {
        $mine = another($db->connection);
        $mine->beginTransaction();
        $mine->insert($table, ['name' => $name]);
        $mine->fetchNumeric(str_replace('0.05', '20', $db->slow()), ['text' => 'x']);
    });
    Samovar\delay(0.05);
    $task->cancel();
    unset($task);
    for ($i = 0; $i < 500 && $db->stats()['used'] > 0; $i++) {
        Samovar\delay(0.01);
    }

    return [(int) $db->connection->fetchOne("SELECT count(*) FROM $table WHERE name = ?", [$name]), $db->stats()['used']];
}

/** All connections are killed. Each may fail at most once, and new ones replace them. */
function doctrine_killed(Databases $db): array
{
    doctrine_many($db);
    $killer = $db->isPostgres() ? connect_pgsql() : connect_mysql();
    if ($db->isPostgres()) {
        $killer->query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = \'client backend\'');
    } else {
        foreach ($killer->query('SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND user = \'root\'')->fetchAll() as [$id]) {
            caught(fn () => $killer->exec("KILL $id"));
        }
    }
    $failed = 0;
    for ($i = 0; $i < 4; $i++) {
        $failed += (int) (caught(fn () => $db->connection->fetchOne('SELECT 1'))[0] !== 'returned');
    }

    return [$failed <= 3, (int) $db->connection->fetchOne('SELECT 7'), $db->stats()['used']];
}

function doctrine(string $driver, string $what): array
{
    // Kept as long as the application.
    static $databases = [];
    connect_mysql()->exec('CREATE DATABASE IF NOT EXISTS tasks');
    $databases[$driver] ??= new Databases($driver, new PoolMiddleware(size: 3, maxUses: 100));

    return ('doctrine_' . $what)($databases[$driver]);
}

function pooled_redis(): array
{
    static $redis;
    $redis ??= new PooledRedis(connect_redis(...), size: 3);
    $redis->del('pooled', 'hash');
    $ids = Samovar\parallel(array_fill(0, 9, fn () => $redis->use(function (Redis $one): int {
        $one->rawCommand('BLPOP', 'nothing', '0.05');

        return (int) $one->rawCommand('CLIENT', 'ID');
    })));
    $sums = Samovar\parallel(array_fill(0, 9, fn () => $redis->incr('pooled')));
    sort($sums);
    $redis->hMSet('hash', ['a' => '1', 'b' => '2']);
    $walk = null;
    $result = $redis->use(fn (Redis $one) => $one->multi()->incr('pooled')->get('pooled')->exec());
    $left = caught(fn () => $redis->use(fn (Redis $one) => $one->multi()->incr('pooled')))[0];

    return [count(array_unique($ids)), $sums, $redis->hScan('hash', $walk), $result, caught(fn () => $redis->multi())[0], $left,
        $redis->get('pooled'), $redis->stats()['used']];
}
