<?php

/** The same behind a Randomizer, with other engines. */

declare(strict_types=1);

return [
    'boot' => static fn () => array_map(static fn ($engine) => new Random\Randomizer($engine), [
        new Random\Engine\PcgOneseq128XslRr64(7),
        new Random\Engine\Xoshiro256StarStar(7),
    ]),
    'leak' => static fn (array $two) => array_map(static fn ($one) => $one->nextInt(), $two),
    'look' => static fn (array $two) => array_map(static fn ($one) => $one->nextInt(), $two),
    'resident' => 'kept',
];
