<?php

/** The locale of numbers only. */

declare(strict_types=1);

return [
    'leak' => static fn () => setlocale(LC_NUMERIC, 'C.UTF-8'),
    'look' => static fn () => [setlocale(LC_NUMERIC, '0'), localeconv()['decimal_point']],
    'resident' => 'reset',
];
