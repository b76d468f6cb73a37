<?php

/*
 * Shared objects. Each path does one operation on a shared object and responds with the result.
 * MODEL sets the execution model. The code before its call runs once.
 */

declare(strict_types=1);

use Samovar\Cache;
use Samovar\Counter;
use Samovar\Lock;
use Samovar\RateLimiter;
use Samovar\Table;

require __DIR__ . '/breaker.php';

const COLUMNS = ['n' => 'int', 'twice' => 'int', 'half' => 'float', 'text' => 'string(20)'];

$counter = new Counter('visits');
$table = new Table('rows', 100, COLUMNS);
$lock = new Lock('work');
$limiter = new RateLimiter('attempts', 0.001, 5, 16);
$cache = new Cache('values', 1 << 20);

function write(Table $table, string $key, int $n): void
{
    $table->set($key, ['n' => $n, 'twice' => 2 * $n, 'half' => $n / 2, 'text' => "number $n"]);
}

function is_whole(?array $row): bool
{
    return $row === null || $row['twice'] === 2 * $row['n'] && $row['half'] === (float) ($row['n'] / 2)
        && $row['text'] === "number {$row['n']}";
}

/** Returns the exception of an operation as text. */
function thrown(callable $operation): string
{
    try {
        return 'nothing: ' . json_encode($operation());
    } catch (\Throwable $thrown) {
        return $thrown::class . ': ' . $thrown->getMessage();
    }
}

/** Two concurrent calls would see each other. */
function alone(Lock $lock, Table $table): array
{
    $inside = fn (): array => [$table->incr('inside', 'n'), usleep(2000), $table->decr('inside', 'n')];

    return $lock->synchronized($inside, 20.0);
}

/** Tests a lock within one request, including invalid calls. */
function hold(): array
{
    $lock = new Lock('held');
    $other = new Lock('held');

    return [
        'at first' => [$lock->isHeld(), $lock->release()],
        'acquired' => [$lock->acquire(), $lock->isHeld(), $other->isHeld()],
        'again' => thrown(fn () => $other->acquire(0.1)),
        'by another object' => [$other->release(), $lock->isHeld()],
        'released' => [$lock->release(), $lock->isHeld(), $other->acquire(), $lock->release(), $other->release()],
        'destroyed' => [(fn (): bool => (new Lock('held'))->acquire())(), (new Lock('held'))->isHeld()],
        'synchronized' => $lock->synchronized(fn () => $lock->isHeld()),
        'exception' => thrown(fn () => $lock->synchronized(fn () => throw new \LogicException('inside'))),
        'afterwards' => $lock->isHeld(),
        'no name' => thrown(fn () => new Lock('')),
        'twice' => thrown(fn () => $lock->__construct('other')),
        'clone' => thrown(fn () => clone $lock),
    ];
}

/** Ends the request in a way that releases the lock. It reports before that it holds the lock. */
function keep(string $end): array
{
    $lock = new Lock("kept by $end");
    $GLOBALS['kept'] = $lock;
    $taken = $lock->acquire(5.0);
    match ($end) {
        'exit' => exit(json_encode([$taken])),
        'fatal' => (function () {
            ini_set('memory_limit', '4M');
            str_repeat('x', 1 << 30);
        })(),
        'exception' => throw new \RuntimeException('the request ends here'),
        'death' => posix_kill(getmypid(), SIGKILL),
        default => null,
    };

    return [$taken];
}

/** Tests the tokens of a bucket, and invalid limiters. */
function limit(RateLimiter $limiter, string $key): array
{
    $five = array_map(fn () => $limiter->allow($key), range(1, 5));

    return [
        'five' => $five,
        'sixth' => $limiter->allow($key),
        'remaining' => [$limiter->remaining($key), $limiter->remaining("$key as well")],
        'retry' => round($limiter->retryAfter($key) / 100) * 100,
        'retry for all' => round($limiter->retryAfter($key, 5) / 100) * 100,
        'others' => $limiter->retryAfter("$key as well"),
        'too much' => thrown(fn () => $limiter->allow($key, 6)),
        'nothing' => thrown(fn () => $limiter->allow($key, 0)),
        'long key' => $limiter->allow(str_repeat('k', 100_000)),
        'other numbers' => thrown(fn () => new RateLimiter('attempts', 1, 5, 16)),
        'no rate' => thrown(fn () => new RateLimiter('none', 0, 5)),
        'no number' => thrown(fn () => new RateLimiter('none', NAN, 5)),
        'no burst' => thrown(fn () => new RateLimiter('none', 1, -5)),
        'no keys' => thrown(fn () => new RateLimiter('none', 1, 5, 0)),
    ];
}

/** Tests reads and invalid calls of a cache. */
function cache(Cache $cache): array
{
    $cache->clear();
    $values = [
        '', 'text', str_repeat("\0\xff", 10_000), 0, -1, PHP_INT_MIN, 1.5, -0.0, INF, true, false, null, [], [1, ['a' => null]],
        new ArrayObject([1, 2]), Suit::Hearts,
    ];
    $same = [];
    foreach ($values as $i => $value) {
        $same[] = $cache->set("value $i", $value) && $cache->has("value $i")
            && var_export($cache->get("value $i", 'nothing'), true) === var_export($value, true);
    }
    $cache->set('gone', 1, 0.001);
    usleep(2000);

    return [
        'same' => array_unique($same),
        'missing' => [$cache->get('nothing'), $cache->get('nothing', 7), $cache->has('nothing')],
        'gone' => [$cache->get('gone'), $cache->set('value 1', 2, 0), $cache->has('value 1')],
        'add' => [$cache->add('new', 1), $cache->add('new', 2), $cache->get('new')],
        'replace' => [$cache->replace('new', 2, 3), $cache->replace('new', 1, 3), $cache->get('new')],
        'increment' => [$cache->increment('count', 5), $cache->increment('count', -7), $cache->get('count')],
        'delete' => [$cache->delete('new'), $cache->delete('new')],
        'too large' => [$cache->set('value 3', str_repeat('x', 100_000)), $cache->get('value 3')],
        'remember' => [
            $cache->remember('made', 60, fn () => 'once'), $cache->remember('made', 60, fn () => 'twice'),
            $cache->remember('nested', null, fn () => $cache->remember('nested', null, fn () => 'inner') . ' and outer'),
            $cache->remember('over', 0, fn () => 'not stored'), $cache->has('over'),
        ],
        'throws' => thrown(fn () => $cache->remember('broken', 60, fn () => throw new \LogicException('no'))),
        'and then' => $cache->remember('broken', 60, fn () => 'whole'),
        'closure' => thrown(fn () => $cache->set('closure', fn () => 1)),
        'no key' => thrown(fn () => $cache->get('')),
        'long key' => thrown(fn () => $cache->set(str_repeat('k', 1025), 1)),
        'no int' => thrown(fn () => $cache->increment('value 2')),
        'mixed' => thrown(fn () => $cache->replace('count', '1', 2)),
        'no time' => thrown(fn () => $cache->add('count 2', 1, -1)),
        'too small' => thrown(fn () => new Cache('small', 1000)),
        'other size' => thrown(fn () => new Cache('values', 1 << 19)),
        'clear' => [$cache->clear(), $cache->get('made')],
    ];
}

enum Suit
{
    case Hearts;
}

/** Makes a value slowly, or ends the request meanwhile. */
function make(Cache $cache, Counter $counter): array
{
    $key = $_GET['key'] ?? '';
    $make = function () use ($counter): string {
        $counter->incr();
        usleep(20_000);
        match ($_GET['end'] ?? '') {
            'exit' => exit('[null]'),
            'death' => posix_kill(getmypid(), SIGKILL),
            'exception' => throw new \RuntimeException('not made'),
            default => null,
        };

        return 'value ' . getmypid();
    };

    return [$cache->remember($key, (float) ($_GET['ttl'] ?? 60), $make, (float) ($_GET['stale'] ?? 0))];
}

/** Invalid calls: name => error message. */
function refusals(Table $table): array
{
    return [
        'other rows' => thrown(fn () => new Table('rows', 99, COLUMNS)),
        'other columns' => thrown(fn () => new Table('rows', 100, ['n' => 'int'])),
        'no rows' => thrown(fn () => new Table('none', 0, COLUMNS)),
        'no columns' => thrown(fn () => new Table('none', 1, [])),
        'no type' => thrown(fn () => new Table('none', 1, ['n' => 'long'])),
        'no names' => thrown(fn () => new Table('none', 1, ['int'])),
        'too many columns' => thrown(fn () => new Table('none', 1, array_fill_keys(array_map(fn (int $i) => "c$i", range(1, 65)), 'int'))),
        'no name' => thrown(fn () => new Counter('')),
        'too large a table' => thrown(fn () => new Table('large', 1 << 22, ['text' => 'string(1000)'])),
        'no key' => thrown(fn () => $table->get('')),
        'long key' => thrown(fn () => $table->get(str_repeat('k', 65))),
        'long text' => thrown(fn () => $table->set('a', ['text' => str_repeat('t', 21)])),
        'no column' => thrown(fn () => $table->set('a', ['m' => 1])),
        'no column to get' => thrown(fn () => $table->get('a', 'm')),
        'wrong type' => thrown(fn () => $table->set('a', ['n' => '1'])),
        'fraction' => thrown(fn () => $table->incr('a', 'n', 0.5)),
        'text to add' => thrown(fn () => $table->incr('a', 'text')),
        'overflow' => thrown(function () use ($table) {
            $table->set('a', ['n' => PHP_INT_MAX]);
            $table->incr('a', 'n');
        }),
        'clone' => thrown(fn () => clone $table),
        'serialize' => thrown(fn () => serialize($table)),
        'by reference' => thrown(function () use ($table) {
            foreach ($table as &$row) {
                $row = [];
            }
        }),
    ];
}

/** Calls operations one after another, and returns their results. */
function walk(Table $table): array
{
    foreach ($table as $key => $row) {
        $table->delete($key);
    }
    write($table, 'a', 1);
    $table->set('b', ['n' => 7]);

    return [
        'missing' => $table->get('nothing'),
        'row' => $table->get('a'),
        'column' => $table->get('a', 'text'),
        'new row' => $table->get('b'),
        'incr' => $table->incr('b', 'n', 3),
        'decr' => $table->decr('b', 'n'),
        'float' => $table->incr('b', 'half', 0.25),
        'new by incr' => $table->incr('c', 'n', -4),
        'cas' => [
            $table->compareAndSet('a', 'text', 'number 2', 'no'),
            $table->compareAndSet('a', 'text', 'number 1', 'yes'),
            $table->compareAndSet('nothing', 'n', 0, 1),
        ],
        'after cas' => $table->get('a', 'text'),
        'deleted' => [$table->delete('c'), $table->delete('c')],
        'count' => [count($table), iterator_count($table->getIterator())],
        'all' => iterator_to_array($table),
        'binary' => [$table->set("\0\xff", ['text' => "\0"]), $table->get("\0\xff", 'text') === "\0"],
    ];
}

function fill(Table $table): array
{
    $thrown = '';
    for ($i = 0; $i < 200 && $thrown === ''; $i++) {
        $said = thrown(fn () => write($table, "fill $i", $i));
        $thrown = str_starts_with($said, 'nothing') ? '' : $said;
    }

    return [count($table), $thrown];
}

/** A child process of a request counts as a separate process. */
function fork(Counter $counter, Table $table): array
{
    $child = pcntl_fork();
    if ($child === 0) {
        $counter->incr(100);
        write($table, 'from a child', 5);
        posix_kill(getmypid(), SIGKILL);
    }
    pcntl_waitpid($child, $status);

    return [$counter->get(), is_whole($table->get('from a child')), $table->get('from a child', 'n')];
}

$handle = function () use ($counter, $table, $lock, $limiter, $cache): void {
    $path = strtok($_SERVER['REQUEST_URI'], '?');
    $own = new Counter('own');
    echo json_encode(match ($path) {
        '/visit' => [$counter->incr(), $own->incr(2), getmypid()],
        '/counter' => [$counter->get(), $own->get()],
        '/operations' => [
            $own->set(5), $own->set(6), $own->decr(), $own->compareAndSet(4, 9), $own->compareAndSet(5, 9), $own->get(),
            $own->set(PHP_INT_MIN), $own->decr(PHP_INT_MIN), $own->set(0),
        ],
        '/walk' => walk($table),
        '/refusals' => refusals($table),
        '/fill' => fill($table),
        '/fork' => fork($counter, $table),
        '/hammer' => (function () use ($table, $counter): array {
            $whole = true;
            for ($i = 0; $i < 500; $i++) {
                $key = 'common ' . random_int(0, 3);
                write($table, $key, random_int(0, 1000));
                $whole = $whole && is_whole($table->get($key));
                random_int(0, 9) === 0 && $table->delete($key);
                $table->incr('sum', 'n');
                $counter->incr();
            }

            return [$whole];
        })(),
        '/check' => (function () use ($table): array {
            $rows = array_filter(iterator_to_array($table), fn (string $key) => $key !== 'sum', ARRAY_FILTER_USE_KEY);

            return [count(array_filter($rows, is_whole(...))) === count($rows), count($table), count($rows)];
        })(),
        '/alone' => alone($lock, $table),
        '/hold' => hold(),
        '/keep' => keep($_GET['end'] ?? ''),
        '/free' => [(new Lock('kept by ' . ($_GET['end'] ?? '')))->acquire(10.0)],
        '/limit' => limit($limiter, $_GET['key'] ?? ''),
        '/attempt' => [$limiter->allow($_GET['key'] ?? '')],
        '/cache' => cache($cache),
        '/make' => make($cache, $own),
        '/breaks' => breaks(),
        '/call' => [call(breaker($_GET['name'] ?? ''), $_GET['end'] ?? ''), breaker($_GET['name'] ?? '')->state()],
        '/sum' => $table->get('sum', 'n'),
        default => 'what?',
    }, JSON_PRESERVE_ZERO_FRACTION | JSON_THROW_ON_ERROR);
};

switch (getenv('MODEL')) {
    case 'resident':
        Samovar\serve($handle);
        break;
    case 'checkpoint':
        Samovar\checkpoint();
        $handle();
        break;
    default:
        $handle();
}
