<?php

/** Output that is on its way already. */

declare(strict_types=1);

return [
    'leak' => static function (): void {
        echo ' ';
        ob_flush();
        flush();
    },
    'look' => static fn () => headers_sent(),
    'resident' => 'reset',
];
