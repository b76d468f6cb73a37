<?php

/** Whether a request goes on when its client has gone. */

declare(strict_types=1);

return [
    'leak' => static fn () => ignore_user_abort(true),
    'look' => static fn () => ignore_user_abort(),
    'resident' => 'reset',
];
