<?php

/** A global variable of the application. */

declare(strict_types=1);

return [
    'boot' => static fn () => $GLOBALS['tea'] = 'green',
    'leak' => static fn () => $GLOBALS['tea'] = 'black',
    'look' => static fn () => $GLOBALS['tea'],
    'resident' => 'kept',
];
