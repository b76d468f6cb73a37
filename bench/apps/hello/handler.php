<?php

declare(strict_types=1);

namespace Samovar\Bench\Hello;

/** The smallest answer: what remains is the server. */
function answer(): string
{
    return 'Hello, World!';
}
