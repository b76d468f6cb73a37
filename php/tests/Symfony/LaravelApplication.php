<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Symfony;

use Illuminate\Config\Repository;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Http\Kernel as HttpKernelContract;
use Illuminate\Foundation\Application;
use Illuminate\Foundation\Bootstrap\BootProviders;
use Illuminate\Foundation\Exceptions\Handler;
use Illuminate\Foundation\Http\Kernel;
use Illuminate\Routing\Router;

/**
 * A Laravel application in one file. The logged-in user stays in its container, as in any Laravel
 * application.
 */
final class LaravelApplication
{
    public static function kernel(): HttpKernelContract
    {
        // Debian's Laravel 8 is older than PHP 8.2.
        error_reporting(E_ALL & ~E_DEPRECATED);
        $application = new Application(__DIR__);
        $application->instance('config', new Repository(['app' => ['env' => 'production', 'debug' => true]]));
        $application->singleton(ExceptionHandler::class, Handler::class);
        $application->instance('user', 'nobody');
        $application->instance('booted with', 'nothing');
        $application->booted(static function (Application $application): void {
            $application->instance('booted with', $application->make('request')->url());
        });
        self::routes($application->make('router'));

        return new class ($application, $application->make('router')) extends Kernel {
            protected $bootstrappers = [BootProviders::class];
        };
    }

    private static function routes(Router $router): void
    {
        $router->get('/', static fn (): string => request()->fullUrl());
        $router->get('/boot', static fn (): string => app('booted with'));
        $router->get('/who', static fn (): string => app('user'));
        $router->get('/login', static function (): string {
            app()->instance('user', 'ann');

            return 'in';
        });
    }
}
