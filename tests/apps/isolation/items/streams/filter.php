<?php

/** A stream filter. */

declare(strict_types=1);

return [
    'leak' => static fn () => stream_filter_register('isolation.dirt', php_user_filter::class),
    'look' => static fn () => in_array('isolation.dirt', stream_get_filters(), true),
    'resident' => 'kept',
];
