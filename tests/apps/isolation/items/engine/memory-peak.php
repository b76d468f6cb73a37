<?php

/** The peak of memory use. */

declare(strict_types=1);

return [
    'leak' => static fn () => strlen(str_repeat('dirt', 10 << 20)),
    'look' => static fn () => memory_get_peak_usage() >> 20,
    'resident' => 'reset',
];
