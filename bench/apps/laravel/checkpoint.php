<?php

declare(strict_types=1);

use App\Worker;
use Illuminate\Contracts\Http\Kernel;
use Illuminate\Http\Request;

$app = require __DIR__ . '/bootstrap/app.php';
$kernel = $app->make(Kernel::class);
$kernel->bootstrap();

// One page ahead, in a clone of the application that is thrown away: classes, the compiled view and what services keep
// for good stay, what belongs to a visitor does not.
Samovar\warmup(static function () use ($app): void {
    (new Worker($app))->handle(Request::create('/'), static fn () => null);
});
Samovar\checkpoint();

$request = Request::capture();
$response = $kernel->handle($request);
$response->send();
$kernel->terminate($request, $response);
