<?php

declare(strict_types=1);

namespace Samovar\Bench\Streamed;

const PIECES = 100;

/** nginx buffers a response unless the response disables it. */
const HEADERS = ['Content-Type' => 'text/plain', 'X-Accel-Buffering' => 'no'];

/**
 * 100 pieces of 1 KiB.
 *
 * @return iterable<string>
 */
function pieces(): iterable
{
    for ($number = 1; $number <= PIECES; $number++) {
        yield str_pad("piece $number of " . PIECES . ' ', 1023, '.') . "\n";
    }
}

/** Sends each piece before the next is created. */
function respond(): void
{
    foreach (HEADERS as $name => $value) {
        header("$name: $value");
    }
    foreach (pieces() as $piece) {
        echo $piece;
        ob_get_level() > 0 && ob_flush();
        flush();
    }
}
