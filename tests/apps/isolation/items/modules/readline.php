<?php

/** The settings of readline. */

declare(strict_types=1);

return [
    'leak' => static fn () => readline_info('readline_name', 'dirt'),
    'look' => static fn () => readline_info('readline_name'),
    'resident' => 'kept',
    'needs' => ['readline'],
];
