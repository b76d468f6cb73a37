<?php

declare(strict_types=1);

/*
 * The leak: a static array that keeps 100 KB of each request. bench/apps/bootstrap is the application that has it: its
 * 300 classes and objects are a boot that costs something.
 */

namespace Samovar\Bench\Recycle;

const LEAK_BYTES = 100 * 1000;

/** Keeps something of each request, as a cache without a limit does. Answers how many it has kept. */
function leak(bool $keeps): int
{
    static $kept = [];
    // Where nothing is to be kept it is made all the same: what is compared is the end of a leak, not its cost.
    $piece = str_repeat('x', LEAK_BYTES);
    if ($keeps) {
        $kept[] = $piece;
    }

    return count($kept);
}
