<?php

/** The last error of intl. */

declare(strict_types=1);

return [
    'leak' => static fn () => intl_get_error_code() . NumberFormatter::create('en', 99_999),
    'look' => static fn () => intl_get_error_message(),
    'resident' => 'kept',
    'needs' => ['intl'],
];
