<?php

/** A new global variable. */

declare(strict_types=1);

return [
    'leak' => static fn () => $GLOBALS['dirt'] = range(1, 1000),
    'look' => static fn () => isset($GLOBALS['dirt']),
    'resident' => 'kept',
];
