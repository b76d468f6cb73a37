<?php

/** The cache settings of sessions. */

declare(strict_types=1);

return [
    'leak' => static fn () => [session_cache_limiter('public'), session_cache_expire(77)],
    'look' => static fn () => [session_cache_limiter(), session_cache_expire()],
    'resident' => 'reset',
];
