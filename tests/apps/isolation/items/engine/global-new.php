<?php

/** A global variable that was not there. */

declare(strict_types=1);

return [
    'leak' => static fn () => $GLOBALS['dirt'] = range(1, 1000),
    'look' => static fn () => isset($GLOBALS['dirt']),
    'resident' => 'kept',
];
