<?php

/** Whether a request continues after its client has left. */

declare(strict_types=1);

return [
    'leak' => static fn () => ignore_user_abort(true),
    'look' => static fn () => ignore_user_abort(),
    'resident' => 'reset',
];
