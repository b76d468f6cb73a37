<?php

/** The parameters of the session cookie. */

declare(strict_types=1);

return [
    'leak' => static fn () => session_set_cookie_params(77, '/dirt', 'dirt.example', true, true),
    'look' => static fn () => session_get_cookie_params(),
    'resident' => 'reset',
];
