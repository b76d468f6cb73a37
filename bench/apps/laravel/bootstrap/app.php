<?php

declare(strict_types=1);

/*
 * The application as Laravel's own skeleton creates it. Debian's package contains only the
 * framework, so this skeleton is a minimal one: one page, the skeleton's providers and middleware,
 * sessions in files.
 */

use App\Application;

require_once '/usr/share/php/Illuminate/autoload.php';

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'App\\')) {
        require dirname(__DIR__) . '/app/' . strtr(substr($class, strlen('App\\')), '\\', '/') . '.php';
    }
});

$app = new Application(dirname(__DIR__));
$app->useStoragePath(getenv('BENCH_VAR') . '/storage');
$app->singleton(Illuminate\Contracts\Http\Kernel::class, App\Http\Kernel::class);
$app->singleton(
    Illuminate\Contracts\Debug\ExceptionHandler::class,
    Illuminate\Foundation\Exceptions\Handler::class,
);

return $app;
