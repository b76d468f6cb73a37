<?php

/** Interned strings. */

declare(strict_types=1);

return [
    'leak' => static function (): void {
        for ($n = 0; $n < 500; $n++) {
            eval("\$dirt_$n = 'dirt string $n'; \$GLOBALS['dirt of $n'] = 1;");
        }
    },
    'look' => static fn () => count($GLOBALS),
    'resident' => 'kept',
];
