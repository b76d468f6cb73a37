<?php

/** Data of a session that never was. */

declare(strict_types=1);

return [
    'leak' => static fn () => $_SESSION = ['dirt' => 1],
    'look' => static fn () => $_SESSION ?? null,
    'resident' => 'reset',
];
