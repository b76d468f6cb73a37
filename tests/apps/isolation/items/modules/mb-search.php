<?php

/** A search that continues from the last match. */

declare(strict_types=1);

return [
    'leak' => static function (): void {
        mb_ereg_search_init('dirt dirt dirt', 'i');
        mb_ereg_search();
    },
    'look' => static fn () => mb_ereg_search_getpos(),
    'resident' => 'reset',
    'needs' => ['mbstring'],
];
