<?php

/** The last error of regular expressions. */

declare(strict_types=1);

return [
    'leak' => static fn () => preg_match('/(?:\D+|<\d+>)*[!?]/', 'foobar foobar foobar'),
    'look' => static fn () => preg_last_error(),
    'resident' => 'reset',
];
