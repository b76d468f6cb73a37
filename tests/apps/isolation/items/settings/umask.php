<?php

/** Which rights new files lack. */

declare(strict_types=1);

return [
    'leak' => static fn () => umask(0077),
    'look' => static fn () => [umask(), preg_grep('/^Umask/', file('/proc/self/status'))],
    'resident' => 'reset',
];
