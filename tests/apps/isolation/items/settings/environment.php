<?php

/** An environment variable. */

declare(strict_types=1);

return [
    'leak' => static fn () => putenv('ISOLATION_DIRT=1'),
    'look' => static fn () => getenv('ISOLATION_DIRT'),
    'resident' => 'reset',
];
