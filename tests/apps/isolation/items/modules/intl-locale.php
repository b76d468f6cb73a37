<?php

/** The locale of intl. */

declare(strict_types=1);

return [
    'leak' => static fn () => Locale::setDefault('tr_TR'),
    'look' => static fn () => Locale::getDefault(),
    'resident' => 'reset',
    'needs' => ['intl'],
];
