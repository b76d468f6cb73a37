<?php

declare(strict_types=1);

namespace Samovar\Bench\Large;

const BYTES = 1_048_576;

/** 1 MiB, built again for each request, as a report would be. */
function answer(): string
{
    $line = "A line of a long report: sixty-four bytes, with its line feed.\n\n";

    return str_repeat($line, intdiv(BYTES, strlen($line)));
}
