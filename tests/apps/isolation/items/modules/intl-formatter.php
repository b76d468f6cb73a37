<?php

/** A formatter created above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static fn () => new NumberFormatter('en_GB', NumberFormatter::DECIMAL),
    'leak' => static fn (NumberFormatter $f) => $f->setAttribute(NumberFormatter::FRACTION_DIGITS, 7),
    'look' => static fn (NumberFormatter $f) => $f->format(1234.5),
    'resident' => 'kept',
    'needs' => ['intl'],
];
