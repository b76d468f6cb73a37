<?php

/** The cycle collector, disabled. */

declare(strict_types=1);

return [
    'leak' => static fn () => gc_disable(),
    'look' => static fn () => gc_enabled(),
    'resident' => 'reset',
];
