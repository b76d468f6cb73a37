<?php

/** The superglobal $_ENV. */

declare(strict_types=1);

return [
    'leak' => static fn () => $_ENV['DIRT'] = 1,
    'look' => static fn () => isset($_ENV['DIRT']),
    'resident' => 'reset',
];
