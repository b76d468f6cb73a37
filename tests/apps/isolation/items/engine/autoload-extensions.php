<?php

/** File extensions that the default autoloader tries. */

declare(strict_types=1);

return [
    'leak' => static fn () => spl_autoload_extensions('.dirt'),
    'look' => static fn () => spl_autoload_extensions(),
    'resident' => 'reset',
];
