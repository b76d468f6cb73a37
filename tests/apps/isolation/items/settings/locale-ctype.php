<?php

/** The locale for character classes: the set of letters. */

declare(strict_types=1);

return [
    'leak' => static fn () => setlocale(LC_CTYPE, 'C.UTF-8'),
    'look' => static fn () => [setlocale(LC_CTYPE, '0'), escapeshellarg("t\u{e9}")],
    'resident' => 'reset',
];
