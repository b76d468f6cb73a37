<?php

/** 50 MB that a static property holds. */

declare(strict_types=1);

namespace Isolation\Items;

final class Heavy
{
    public static string $load = '';
}

return [
    'leak' => static fn () => Heavy::$load = str_repeat('dirt', 12 << 20),
    'look' => static fn () => memory_get_usage() >> 12,
    'resident' => 'kept',
];
