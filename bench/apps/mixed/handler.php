<?php

declare(strict_types=1);

namespace Samovar\Bench\Mixed;

const SHORT_MICROSECONDS = 1_000;
const LONG_MICROSECONDS = 50_000;

/** Sleeps instead of computing, so that the cores are free: the measurement shows which requests
 * wait for others. */
function answer(string $path): string
{
    usleep($path === '/long' ? LONG_MICROSECONDS : SHORT_MICROSECONDS);

    return "answered $path\n";
}

/** Reads from and writes to superglobals. */
function respond(): void
{
    header('Content-Type: text/plain');
    echo answer($_SERVER['REQUEST_URI']);
}
