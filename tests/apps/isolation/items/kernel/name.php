<?php

/** The process's name and its OOM score. */

declare(strict_types=1);

return [
    'leak' => static function (): void {
        file_put_contents('/proc/self/comm', 'dirt');
        file_put_contents('/proc/self/oom_score_adj', '777');
    },
    'look' => static fn () => [file_get_contents('/proc/self/comm'), file_get_contents('/proc/self/oom_score_adj')],
    'resident' => 'kept',
    'refork' => null,
];
