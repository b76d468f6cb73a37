<?php

/** The last error of JSON. */

declare(strict_types=1);

return [
    'leak' => static fn () => json_decode('{'),
    'look' => static fn () => json_last_error_msg(),
    'resident' => 'reset',
];
