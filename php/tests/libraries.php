<?php

declare(strict_types=1);

/*
 * Loads this package and the libraries for its tests, from Composer's vendor/ or from Debian's
 * packages. Libraries that neither provides have small fakes.
 */

(static function (): void {
    $vendor = dirname(__DIR__) . '/vendor/autoload.php';
    if (is_file($vendor)) {
        require_once $vendor;
    } else {
        $debian = [
            'Psr/Http/Message/autoload.php',
            'Psr/Http/Message/factory-autoload.php',
            'Doctrine/DBAL/autoload.php',
            'Symfony/Component/HttpKernel/autoload.php',
            'Symfony/Component/Console/autoload.php',
            'Symfony/Component/Messenger/autoload.php',
            'Symfony/Component/Process/autoload.php',
            'Symfony/Component/Runtime/autoload.php',
            'Illuminate/autoload.php',
            'Nyholm/Psr7/autoload.php',
        ];
        foreach ($debian as $file) {
            if (stream_resolve_include_path($file) !== false) {
                require_once $file;
            }
        }
        require_once dirname(__DIR__) . '/autoload.php';
        spl_autoload_register(static function (string $class): void {
            $prefix = 'Samovar\Runtime\Tests\\';
            $file = __DIR__ . '/' . strtr(substr($class, strlen($prefix)), '\\', '/') . '.php';
            if (str_starts_with($class, $prefix) && is_file($file)) {
                require $file;
            }
        });
    }
    if (!interface_exists(Psr\Http\Server\RequestHandlerInterface::class)) {
        require __DIR__ . '/fakes/psr15.php';
    }
    if (!interface_exists(Laravel\Octane\Contracts\Client::class)) {
        require __DIR__ . '/fakes/octane.php';
    }
})();
