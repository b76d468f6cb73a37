<?php

/** The time limit of a request. */

declare(strict_types=1);

return [
    'leak' => static fn () => set_time_limit(77),
    'look' => static fn () => ini_get('max_execution_time'),
    'resident' => 'reset',
];
