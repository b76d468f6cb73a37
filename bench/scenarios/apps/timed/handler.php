<?php

declare(strict_types=1);

namespace Samovar\Bench\Timed;

/** A timer whose tags are one of ten thousand sets. */
function answer(): string
{
    $timer = \Samovar\timer(['group' => 'set', 'number' => random_int(0, 9_999)]);
    $timer->start();
    $timer->stop();

    return 'Hello, World!';
}
