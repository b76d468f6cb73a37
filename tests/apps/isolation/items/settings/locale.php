<?php

/** The locale of all categories. */

declare(strict_types=1);

return [
    'boot' => static fn () => setlocale(LC_ALL, 'C'),
    'leak' => static fn () => setlocale(LC_ALL, 'C.UTF-8'),
    'look' => static fn () => setlocale(LC_ALL, '0'),
    'resident' => 'reset',
];
