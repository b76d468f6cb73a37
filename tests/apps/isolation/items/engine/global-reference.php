<?php

/** Two names of one variable. */

declare(strict_types=1);

return [
    'boot' => static function (): void {
        $GLOBALS['pot'] = ['cups' => 1];
        $GLOBALS['kettle'] = &$GLOBALS['pot']['cups'];
    },
    'leak' => static fn () => $GLOBALS['kettle'] = 77,
    'look' => static fn () => $GLOBALS['pot'],
    'resident' => 'kept',
];
