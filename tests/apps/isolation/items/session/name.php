<?php

/** The name of the session's cookie. */

declare(strict_types=1);

return [
    'leak' => static fn () => session_name('DIRT'),
    'look' => static fn () => session_name(),
    'resident' => 'reset',
];
