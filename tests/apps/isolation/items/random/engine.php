<?php

/** A generator that the application has given a seed goes on from there, in each request. */

declare(strict_types=1);

return [
    'boot' => static fn () => new Random\Engine\Mt19937(7),
    'leak' => static fn (Random\Engine $engine) => $engine->generate(),
    'look' => static fn (Random\Engine $engine) => bin2hex($engine->generate()),
    'resident' => 'kept',
];
