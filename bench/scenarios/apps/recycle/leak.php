<?php

declare(strict_types=1);

/*
 * The leak: a static array that keeps 100 KB of each request. The leaking application is
 * bench/apps/bootstrap, whose boot of 300 classes and objects has a cost.
 */

namespace Samovar\Bench\Recycle;

const LEAK_BYTES = 100 * 1000;

/** Keeps a piece of each request, as a cache without a limit does. Returns the number of kept
 * pieces. */
function leak(bool $keeps): int
{
    static $kept = [];
    // The piece is created even if it is not kept: the comparison is about the end of a leak, not
    // about its cost.
    $piece = str_repeat('x', LEAK_BYTES);
    if ($keeps) {
        $kept[] = $piece;
    }

    return count($kept);
}
