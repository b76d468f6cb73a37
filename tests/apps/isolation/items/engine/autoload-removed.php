<?php

/** An autoloader of the application, removed. */

declare(strict_types=1);

namespace Isolation\Items;

function load_nothing(string $class): void
{
}

return [
    'boot' => static fn () => spl_autoload_register(load_nothing(...)),
    'leak' => static fn () => array_map(spl_autoload_unregister(...), spl_autoload_functions()),
    'look' => static fn () => \count(spl_autoload_functions()),
    'resident' => 'kept',
];
