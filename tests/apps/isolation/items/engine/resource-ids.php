<?php

/** The number that the next resource gets. */

declare(strict_types=1);

return [
    'leak' => static fn () => array_map(static fn () => fopen('php://memory', 'r'), range(1, 100)),
    'look' => static fn () => get_resource_id(fopen('php://memory', 'r')),
    'resident' => 'kept',
];
