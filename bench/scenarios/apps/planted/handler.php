<?php

declare(strict_types=1);

namespace Samovar\Bench\Planted;

use DomainException;
use PDO;

/** CPU time of this process in ns. */
function cpu(): int
{
    $all = getrusage();
    $seconds = $all['ru_utime.tv_sec'] + $all['ru_stime.tv_sec'];

    return 1_000 * (1_000_000 * $seconds + $all['ru_utime.tv_usec'] + $all['ru_stime.tv_usec']);
}

/** Sleeps, computes, asks a database or fails, as the request wants, and returns its own figures as JSON. */
function answer(): string
{
    $kind = (string) ($_GET['kind'] ?? '');
    \Samovar\route($kind);
    [$begin, $cpu, $slept] = [hrtime(true), cpu(), 0];
    switch ($kind) {
        case 'list':
            usleep(1_000 * (int) ($_GET['ms'] ?? 5));
            $slept = hrtime(true) - $begin;
            break;
        case 'report':
            for ($end = $begin + 10_000_000; hrtime(true) < $end;);
            break;
        case 'product':
            $database = new PDO('sqlite::memory:');
            $database->exec('CREATE TABLE part (id INTEGER)');
            $part = $database->prepare('SELECT id FROM part WHERE id = ?');
            for ($number = 0; $number < 21; ++$number) {
                $part->execute([$number]);
            }
            break;
        case 'export':
            str_repeat('x', random_int(9 << 20, (9 << 20) + 1));
            break;
        case 'checkout':
            throw new DomainException('planted');
    }

    return json_encode([
        'ns' => hrtime(true) - $begin,
        'cpu' => cpu() - $cpu,
        'slept' => $slept,
        'peak' => memory_get_peak_usage(),
    ]);
}
