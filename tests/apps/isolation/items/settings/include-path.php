<?php

/** The include path. */

declare(strict_types=1);

return [
    'leak' => static fn () => set_include_path('/dirt'),
    'look' => static fn () => get_include_path(),
    'resident' => 'reset',
];
