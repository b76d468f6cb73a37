<?php

/** Output that is compressed. */

declare(strict_types=1);

return [
    'leak' => static fn () => ini_set('zlib.output_compression', '1'),
    'look' => static fn () => [ini_get('zlib.output_compression'), ob_list_handlers()],
    'resident' => 'reset',
    'needs' => ['zlib'],
];
