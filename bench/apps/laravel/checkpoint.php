<?php

declare(strict_types=1);

use App\Worker;
use Illuminate\Contracts\Http\Kernel;
use Illuminate\Http\Request;

$app = require __DIR__ . '/bootstrap/app.php';
$kernel = $app->make(Kernel::class);
$kernel->bootstrap();

// Renders one page ahead, in a clone of the application that is then dropped. Classes, the compiled
// view and the permanent state of services stay; data of a visitor do not.
Samovar\warmup(static function () use ($app): void {
    (new Worker($app))->handle(Request::create('/'), static fn () => null);
});
Samovar\checkpoint();

$request = Request::capture();
$response = $kernel->handle($request);
$response->send();
$kernel->terminate($request, $response);
