<?php

/** A constant. */

declare(strict_types=1);

return [
    'leak' => static fn () => define('ISOLATION_DIRT', 1),
    'look' => static fn () => defined('ISOLATION_DIRT'),
    'resident' => 'kept',
];
