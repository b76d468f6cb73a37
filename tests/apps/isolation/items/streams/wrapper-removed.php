<?php

/** A stream wrapper of PHP, removed. */

declare(strict_types=1);

return [
    'leak' => static fn () => stream_wrapper_unregister('http'),
    'look' => static fn () => in_array('http', stream_get_wrappers(), true),
    'resident' => 'reset',
];
