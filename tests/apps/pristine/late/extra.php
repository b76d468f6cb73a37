<?php

declare(strict_types=1);

namespace Pristine\Late;

/** Declared by whoever includes this. */
function extra(): string
{
    static $calls = 0;

    return 'extra ' . ++$calls;
}

const EXTRA = 'extra';

return ['included' => true];
