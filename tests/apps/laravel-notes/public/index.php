<?php

declare(strict_types=1);

/* The front controller of Laravel's skeleton, without code for any specific server. */

use Illuminate\Contracts\Http\Kernel;
use Illuminate\Http\Request;

define('LARAVEL_START', microtime(true));

require __DIR__ . '/../bootstrap/autoload.php';

$app = require_once __DIR__ . '/../bootstrap/app.php';
$kernel = $app->make(Kernel::class);
$request = Request::capture();
$response = $kernel->handle($request)->send();
$kernel->terminate($request, $response);
