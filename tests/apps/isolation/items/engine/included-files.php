<?php

/** The list of included files: a listed file is skipped by the next include_once. */

declare(strict_types=1);

return [
    'leak' => static fn () => include_once dirname(__DIR__, 2) . '/late/extra.php',
    'look' => static fn () => in_array(dirname(__DIR__, 2) . '/late/extra.php', get_included_files(), true),
    'resident' => 'kept',
];
