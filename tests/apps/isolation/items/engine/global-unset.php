<?php

/** A removed global variable. */

declare(strict_types=1);

return [
    'boot' => static fn () => $GLOBALS['milk'] = 'some',
    'leak' => static function (): void {
        unset($GLOBALS['milk']);
    },
    'look' => static fn () => isset($GLOBALS['milk']),
    'resident' => 'kept',
];
