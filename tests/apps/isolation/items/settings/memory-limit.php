<?php

/** The memory limit of a request. */

declare(strict_types=1);

return [
    'leak' => static fn () => ini_set('memory_limit', '200M'),
    'look' => static fn () => ini_get('memory_limit'),
    'resident' => 'reset',
];
