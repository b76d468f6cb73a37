<?php

/** The ID of the next session. */

declare(strict_types=1);

return [
    'leak' => static fn () => session_id('dirt'),
    'look' => static fn () => session_id(),
    'resident' => 'reset',
];
