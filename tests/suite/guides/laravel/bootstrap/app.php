<?php

declare(strict_types=1);

use App\Exceptions\Handler;
use App\Http\Kernel;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Http\Kernel as HttpKernel;
use Illuminate\Foundation\Application;

$app = new Application(dirname(__DIR__));
// Debian's package installs the framework's configuration in another place than later versions
// expect.
if (method_exists($app, 'dontMergeFrameworkConfiguration')) {
    $app->dontMergeFrameworkConfiguration();
}
$app->singleton(HttpKernel::class, Kernel::class);
$app->singleton(ExceptionHandler::class, Handler::class);

return $app;
