<?php

/** A file that counts as included: include_once does nothing the next time. */

declare(strict_types=1);

return [
    'leak' => static fn () => include_once dirname(__DIR__, 2) . '/late/extra.php',
    'look' => static fn () => in_array(dirname(__DIR__, 2) . '/late/extra.php', get_included_files(), true),
    'resident' => 'kept',
];
