<?php

declare(strict_types=1);

/* Replaces Composer's vendor/autoload.php. The framework is a Debian package. */

require_once '/usr/share/php/Illuminate/autoload.php';

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'App\\')) {
        $file = dirname(__DIR__) . '/app/' . strtr(substr($class, strlen('App\\')), '\\', '/') . '.php';
        is_file($file) && require $file;
    }
});
