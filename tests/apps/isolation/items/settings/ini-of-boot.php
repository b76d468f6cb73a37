<?php

/** A setting that the application has changed, and a request restores. */

declare(strict_types=1);

return [
    'boot' => static fn () => ini_set('user_agent', 'Tea/1.0'),
    'leak' => static fn () => ini_restore('user_agent'),
    'look' => static fn () => ini_get('user_agent'),
    'resident' => 'reset',
];
