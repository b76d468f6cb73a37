<?php

/** An output buffer whose callback changes the answer. */

declare(strict_types=1);

return [
    'leak' => static fn () => ob_start(static function (string $text): string {
        header('X-Leak: callback');

        return $text . ' ';
    }),
    'look' => static fn () => ob_list_handlers(),
    'resident' => 'reset',
];
