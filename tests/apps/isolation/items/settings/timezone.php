<?php

/** The time zone of dates. */

declare(strict_types=1);

return [
    'leak' => static fn () => date_default_timezone_set('Asia/Tokyo'),
    'look' => static fn () => [date_default_timezone_get(), date('c', 0)],
    'resident' => 'reset',
];
