<?php

declare(strict_types=1);

/*
 * Loads this package where Composer does not: composer.json says the same in its words.
 */

spl_autoload_register(static function (string $class): void {
    $file = match (true) {
        // Only where the server has not brought its own.
        $class === 'Samovar\Request' => __DIR__ . '/polyfill/Request.php',
        $class === 'Samovar\Response' => __DIR__ . '/polyfill/Response.php',
        str_starts_with($class, 'Samovar\Runtime\\') =>
            __DIR__ . '/src/' . strtr(substr($class, strlen('Samovar\Runtime\\')), '\\', '/') . '.php',
        default => null,
    };
    if ($file !== null && is_file($file)) {
        require $file;
    }
});

require_once __DIR__ . '/src/polyfill.php';
require_once __DIR__ . '/src/Psr15/functions.php';
require_once __DIR__ . '/src/RoadRunner/autoload.php';
