<?php

/*
 * What one operation on shared memory costs, and apcu_fetch() beside it where APCu is loaded (php8.2-apcu; --php apc.enabled=1):
 *
 *   nice target/release/samovar serve bench/scenarios/shared.php --workers 1 --shared-bytes-max 256M
 *   curl http://127.0.0.1:8080/
 *
 * Each row is the median of ROUNDS rounds, less what an empty loop of as many calls costs.
 */

declare(strict_types=1);

use Samovar\Breaker;
use Samovar\Cache;
use Samovar\Counter;
use Samovar\Lock;
use Samovar\RateLimiter;
use Samovar\Table;

const ROUNDS = 9;
const CALLS = 100_000;

/** Nanoseconds of one call: the median. */
function cost(callable $loop): float
{
    $each = [];
    for ($round = 0; $round < ROUNDS; $round++) {
        $begin = hrtime(true);
        $loop();
        $each[] = (hrtime(true) - $begin) / CALLS;
    }
    sort($each);

    return $each[intdiv(ROUNDS, 2)];
}

$counter = new Counter('bench');
$table = new Table('bench', 10_000, ['n' => 'int', 'x' => 'float', 'name' => 'string(32)']);
$cache = new Cache('bench', 32 << 20);
$lock = new Lock('bench');
$limiter = new RateLimiter('bench', 1e9, 1_000_000_000);
$breaker = new Breaker('bench');
$nothing = fn () => null;
$kilobyte = str_repeat('x', 1024);
for ($i = 0; $i < 1000; $i++) {
    $table->set("key $i", ['n' => $i, 'name' => "name $i"]);
    $cache->set("key $i", $kilobyte);
}
$array = range(1, 100);
$cache->set('array', $array);
$row = ['n' => 5];
$loops = [
    'Counter::incr' => function () use ($counter) {
        for ($i = 0; $i < CALLS; $i++) {
            $counter->incr();
        }
    },
    'Counter::get' => function () use ($counter) {
        for ($i = 0; $i < CALLS; $i++) {
            $counter->get();
        }
    },
    'Table::get, one column' => function () use ($table) {
        for ($i = 0; $i < CALLS; $i++) {
            $table->get('key 500', 'n');
        }
    },
    'Table::get, a row' => function () use ($table) {
        for ($i = 0; $i < CALLS; $i++) {
            $table->get('key 500');
        }
    },
    'Table::set' => function () use ($table, $row) {
        for ($i = 0; $i < CALLS; $i++) {
            $table->set('key 500', $row);
        }
    },
    'Table::incr' => function () use ($table) {
        for ($i = 0; $i < CALLS; $i++) {
            $table->incr('key 500', 'n');
        }
    },
    'Cache::get, 1 KB' => function () use ($cache) {
        for ($i = 0; $i < CALLS; $i++) {
            $cache->get('key 500');
        }
    },
    'Cache::set, 1 KB' => function () use ($cache, $kilobyte) {
        for ($i = 0; $i < CALLS; $i++) {
            $cache->set('key 500', $kilobyte);
        }
    },
    'Cache::get, array of 100' => function () use ($cache) {
        for ($i = 0; $i < CALLS; $i++) {
            $cache->get('array');
        }
    },
    'Lock::acquire and release' => function () use ($lock) {
        for ($i = 0; $i < CALLS; $i++) {
            $lock->acquire();
            $lock->release();
        }
    },
    'Breaker::call' => function () use ($breaker, $nothing) {
        for ($i = 0; $i < CALLS; $i++) {
            $breaker->call($nothing);
        }
    },
    'RateLimiter::allow' => function () use ($limiter) {
        for ($i = 0; $i < CALLS; $i++) {
            $limiter->allow('key');
        }
    },
];
// However large it is.
Samovar\publish('bench', array_fill(0, 100_000, 'one of many'));
$loops['published, array of 100,000'] = function () {
    for ($i = 0; $i < CALLS; $i++) {
        Samovar\published('bench');
    }
};
if (function_exists('apcu_enabled') && apcu_enabled()) {
    apcu_store('key', $kilobyte);
    apcu_store('array', $array);
    apcu_store('n', 0);
    $loops += [
        'apcu_inc' => function () {
            for ($i = 0; $i < CALLS; $i++) {
                apcu_inc('n');
            }
        },
        'apcu_fetch, 1 KB' => function () {
            for ($i = 0; $i < CALLS; $i++) {
                apcu_fetch('key');
            }
        },
        'apcu_store, 1 KB' => function () use ($kilobyte) {
            for ($i = 0; $i < CALLS; $i++) {
                apcu_store('key', $kilobyte);
            }
        },
        'apcu_fetch, array of 100' => function () {
            for ($i = 0; $i < CALLS; $i++) {
                apcu_fetch('array');
            }
        },
    ];
}
header('Content-Type: text/plain');
$nothing = cost(function () {
    for ($i = 0; $i < CALLS; $i++) {
    }
});
printf("%-28s %7.0f ns\n", 'an empty loop', $nothing);
foreach ($loops as $name => $loop) {
    printf("%-28s %7.0f ns\n", $name, cost($loop) - $nothing);
}
