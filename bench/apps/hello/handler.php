<?php

declare(strict_types=1);

namespace Samovar\Bench\Hello;

/** The smallest response: the rest of the cost is the server's. */
function answer(): string
{
    return 'Hello, World!';
}
