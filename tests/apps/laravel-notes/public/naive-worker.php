<?php

declare(strict_types=1);

/* A FrankenPHP worker script that resets nothing. Only a rollback after each request separates
 * its visitors. */

use Illuminate\Contracts\Http\Kernel;
use Illuminate\Http\Request;

require __DIR__ . '/../bootstrap/autoload.php';

$app = require __DIR__ . '/../bootstrap/app.php';
$app->instance('request', Request::create('http://localhost'));
$kernel = $app->make(Kernel::class);
$kernel->bootstrap();

$handler = static function () use ($kernel): void {
    $request = Request::capture();
    $response = $kernel->handle($request)->send();
    $kernel->terminate($request, $response);
};

while (frankenphp_handle_request($handler)) {
    gc_collect_cycles();
}
