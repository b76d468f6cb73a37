<?php

/*
 * Cost of one operation on shared memory: `?operation=…&calls=…` runs it this number of times and
 * returns the nanoseconds of each. Without an operation: a list of them. The functions `apcu_…` are
 * those of compat = "apcu" or of the extension, depending on the server.
 */

declare(strict_types=1);

use Samovar\Breaker;
use Samovar\Cache;
use Samovar\Counter;
use Samovar\Lock;
use Samovar\RateLimiter;
use Samovar\Table;

const CALLS = 100_000;

define('CALLS_NOW', min(CALLS, max(1, (int) ($_GET['calls'] ?? CALLS))));

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
        for ($i = 0; $i < CALLS_NOW; $i++) {
            $counter->incr();
        }
    },
    'Counter::get' => function () use ($counter) {
        for ($i = 0; $i < CALLS_NOW; $i++) {
            $counter->get();
        }
    },
    'Table::get, one column' => function () use ($table) {
        for ($i = 0; $i < CALLS_NOW; $i++) {
            $table->get('key 500', 'n');
        }
    },
    'Table::get, a row' => function () use ($table) {
        for ($i = 0; $i < CALLS_NOW; $i++) {
            $table->get('key 500');
        }
    },
    'Table::set' => function () use ($table, $row) {
        for ($i = 0; $i < CALLS_NOW; $i++) {
            $table->set('key 500', $row);
        }
    },
    'Table::incr' => function () use ($table) {
        for ($i = 0; $i < CALLS_NOW; $i++) {
            $table->incr('key 500', 'n');
        }
    },
    'Cache::get, 1 KB' => function () use ($cache) {
        for ($i = 0; $i < CALLS_NOW; $i++) {
            $cache->get('key 500');
        }
    },
    'Cache::set, 1 KB' => function () use ($cache, $kilobyte) {
        for ($i = 0; $i < CALLS_NOW; $i++) {
            $cache->set('key 500', $kilobyte);
        }
    },
    'Cache::get, array of 100' => function () use ($cache) {
        for ($i = 0; $i < CALLS_NOW; $i++) {
            $cache->get('array');
        }
    },
    'Lock::acquire and release' => function () use ($lock) {
        for ($i = 0; $i < CALLS_NOW; $i++) {
            $lock->acquire();
            $lock->release();
        }
    },
    'Breaker::call' => function () use ($breaker, $nothing) {
        for ($i = 0; $i < CALLS_NOW; $i++) {
            $breaker->call($nothing);
        }
    },
    'RateLimiter::allow' => function () use ($limiter) {
        for ($i = 0; $i < CALLS_NOW; $i++) {
            $limiter->allow('key');
        }
    },
];
$loops['an empty loop'] = function () {
    for ($i = 0; $i < CALLS_NOW; $i++) {
    }
};
// Its size does not matter.
Samovar\publish('bench', array_fill(0, 100_000, 'one of many'));
$loops['published, array of 100,000'] = function () {
    for ($i = 0; $i < CALLS_NOW; $i++) {
        Samovar\published('bench');
    }
};
if (function_exists('apcu_enabled') && apcu_enabled()) {
    apcu_store('key', $kilobyte);
    apcu_store('array', $array);
    apcu_store('n', 0);
    $loops += [
        'apcu_inc' => function () {
            for ($i = 0; $i < CALLS_NOW; $i++) {
                apcu_inc('n');
            }
        },
        'apcu_fetch, 1 KB' => function () {
            for ($i = 0; $i < CALLS_NOW; $i++) {
                apcu_fetch('key');
            }
        },
        'apcu_store, 1 KB' => function () use ($kilobyte) {
            for ($i = 0; $i < CALLS_NOW; $i++) {
                apcu_store('key', $kilobyte);
            }
        },
        'apcu_fetch, array of 100' => function () {
            for ($i = 0; $i < CALLS_NOW; $i++) {
                apcu_fetch('array');
            }
        },
    ];
}
header('Content-Type: application/json');
$loop = $loops[$_GET['operation'] ?? ''] ?? null;
if ($loop === null) {
    exit(json_encode(array_keys($loops)));
}
$loop(); // The first run differs from the rest.
$begin = hrtime(true);
$loop();
echo json_encode(['ns' => (hrtime(true) - $begin) / CALLS_NOW]);
