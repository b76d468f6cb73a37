<?php

/** A second name for a class. */

declare(strict_types=1);

return [
    'leak' => static fn () => class_alias(Isolation\Suite::class, 'Isolation\Items\Alias'),
    'look' => static fn () => class_exists('Isolation\Items\Alias'),
    'resident' => 'kept',
];
