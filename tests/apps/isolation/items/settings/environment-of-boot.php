<?php

/** An environment variable that the application has set, changed and removed. */

declare(strict_types=1);

return [
    'boot' => static fn () => [putenv('TEA=green'), putenv('MILK=some')],
    'leak' => static fn () => [putenv('TEA=black'), putenv('MILK')],
    'look' => static fn () => [getenv('TEA'), getenv('MILK')],
    'resident' => 'reset',
];
