<?php

/** The last error. */

declare(strict_types=1);

return [
    'leak' => static fn () => @trigger_error('dirt'),
    'look' => static fn () => error_get_last()['message'] ?? null,
    'resident' => 'reset',
];
