<?php

/** $_SESSION without a started session. */

declare(strict_types=1);

return [
    'leak' => static fn () => $_SESSION = ['dirt' => 1],
    'look' => static fn () => $_SESSION ?? null,
    'resident' => 'reset',
];
