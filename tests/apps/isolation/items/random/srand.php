<?php

/** The old name of the same seed, and its old mode. */

declare(strict_types=1);

return [
    'boot' => static function (): array {
        mt_srand(5, MT_RAND_PHP);

        return array_map(static fn () => mt_rand(), range(1, 100));
    },
    'leak' => static fn () => mt_srand(5, MT_RAND_PHP),
    'look' => static fn (array $known) => in_array(mt_rand(), $known, true),
    'resident' => 'reset',
];
