<?php

/*
 * Tests of tasks. Each path lets several tasks wait at once, or ends them at an unusual place, and
 * responds with the result. MODEL sets the execution model. The environment contains the addresses
 * of the other servers.
 */

declare(strict_types=1);

require __DIR__ . '/clients.php';
require __DIR__ . '/rules.php';
require __DIR__ . '/ends.php';
require __DIR__ . '/pools.php';
require __DIR__ . '/pooled.php';
require __DIR__ . '/loop.php';
require __DIR__ . '/names.php';
require __DIR__ . '/odd.php';

$pool = new Samovar\Pool(fn () => connect_pgsql(), size: 3, maxUses: 40);

/**
 * Runs jobs of one client at once. Returns their results, the time of each and of all, and the
 * moments when they began and when they ended, in order.
 */
function jobs(string $client, int $count): array
{
    $work = CLIENTS[$client];
    $tasks = $spans = $begins = $ends = [];
    for ($i = 0; $i < $count; $i++) {
        $tasks["job $i"] = function () use ($work, $i, &$spans, &$begins, &$ends): mixed {
            $from = hrtime(true);
            $begins[] = $from / 1e9;
            $answer = $work($i);
            $ends[] = hrtime(true) / 1e9;
            $spans[] = (hrtime(true) - $from) / 1e9;

            return $answer;
        };
    }
    $from = hrtime(true);
    $answers = Samovar\parallel($tasks);

    $wall = (hrtime(true) - $from) / 1e9;

    return ['answers' => $answers, 'sum' => array_sum($spans), 'wall' => $wall, 'begins' => $begins, 'ends' => $ends];
}

$handle = function () use ($pool): void {
    $path = strtok($_SERVER['REQUEST_URI'], '?');
    $answer = match ($path) {
        '/jobs' => jobs($_GET['client'], (int) ($_GET['count'] ?? 8)),
        '/rule' => RULES[$_GET['name']](),
        '/end' => end_by($_GET['how']),
        '/odd' => odd($_GET['who'], $_GET['how'], $_GET['in'] === 'task', explode(',', $_GET['works']), (int) $_GET['after']),
        '/odd/rest' => odd_rest(),
        '/odd/seen' => odd_seen(),
        '/odd/prepare' => odd_prepare(),
        '/names' => NAMES[$_GET['what']](),
        '/pool' => pooled($pool, $_GET['what']),
        '/doctrine' => doctrine($_GET['driver'], $_GET['what']),
        '/redis' => pooled_redis(),
        default => 'what?',
    };
    header('Content-Type: application/json');
    echo json_encode($answer, JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION);
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
