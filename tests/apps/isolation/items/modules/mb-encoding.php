<?php

/** The encoding of strings, and of output. */

declare(strict_types=1);

return [
    'leak' => static fn () => [mb_internal_encoding('ISO-8859-1'), mb_http_output('SJIS')],
    'look' => static fn () => [mb_internal_encoding(), mb_http_output(), mb_strlen("\u{e9}")],
    'resident' => 'reset',
    'needs' => ['mbstring'],
];
