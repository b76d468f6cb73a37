<?php

/** The type of the answer. */

declare(strict_types=1);

return [
    'leak' => static fn () => [ini_set('default_mimetype', 'text/dirt'), ini_set('default_charset', 'ISO-8859-1')],
    'look' => static fn () => [ini_get('default_mimetype'), ini_get('default_charset')],
    'resident' => 'reset',
];
