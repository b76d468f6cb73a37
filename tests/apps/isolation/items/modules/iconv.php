<?php

/** Encodings of iconv. */

declare(strict_types=1);

return [
    'leak' => static fn () => @iconv_set_encoding('internal_encoding', 'ISO-8859-1'),
    'look' => static fn () => iconv_get_encoding(),
    'resident' => 'reset',
    'needs' => ['iconv'],
];
