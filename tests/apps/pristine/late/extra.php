<?php

declare(strict_types=1);

namespace Pristine\Late;

/** Declared when this file is included. */
function extra(): string
{
    static $calls = 0;

    return 'extra ' . ++$calls;
}

const EXTRA = 'extra';

return ['included' => true];
