<?php

/** The language of mails, and the order of encoding detection. */

declare(strict_types=1);

return [
    'leak' => static fn () => [mb_language('ja'), mb_detect_order(['SJIS', 'UTF-8'])],
    'look' => static fn () => [mb_language(), mb_detect_order()],
    'resident' => 'reset',
    'needs' => ['mbstring'],
];
