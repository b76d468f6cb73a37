<?php

/** The behaviour of assert(). */

declare(strict_types=1);

return [
    'leak' => static fn () => assert_options(ASSERT_CALLBACK, 'strlen'),
    'look' => static fn () => assert_options(ASSERT_CALLBACK),
    'resident' => 'reset',
];
