<?php

declare(strict_types=1);

namespace Samovar\Bench\Mixed;

const SHORT_MICROSECONDS = 1_000;
const LONG_MICROSECONDS = 50_000;

/** Sleeps rather than works, so that the cores are free: what is measured is which request waits behind which. */
function answer(string $path): string
{
    usleep($path === '/long' ? LONG_MICROSECONDS : SHORT_MICROSECONDS);

    return "answered $path\n";
}

/** With superglobals from end to end. */
function respond(): void
{
    header('Content-Type: text/plain');
    echo answer($_SERVER['REQUEST_URI']);
}
