<?php

/** Opcache, disabled for the rest of the request. */

declare(strict_types=1);

return [
    'leak' => static fn () => @ini_set('opcache.enable', '0'),
    'look' => static fn () => ini_get('opcache.enable'),
    'resident' => 'reset',
    'needs' => ['opcache'],
];
