<?php

declare(strict_types=1);

/*
 * The same application, booted once per start of the server. Each request starts at checkpoint():
 *
 *     samovar serve examples/symfony/public/checkpoint.php
 *
 * Under other servers (php-fpm, php -S, samovar with a folder) it works like index.php.
 */

use App\Kernel;
use Symfony\Component\HttpFoundation\Request;

require dirname(__DIR__) . '/autoload.php';

$kernel = new Kernel($_SERVER['APP_ENV'] ?? 'prod', (bool) ($_SERVER['APP_DEBUG'] ?? false));

if (function_exists('Samovar\checkpoint')) {
    // Most pages need the classes, services, templates and compiled patterns that this page loads.
    // The request has a session cookie, so that the code for returning visitors also runs.
    Samovar\warmup(static function () use ($kernel): void {
        $_COOKIE = [session_name() => str_repeat('0', 26)];
        $request = Request::create('/', cookies: $_COOKIE, server: $_SERVER);
        $kernel->terminate($request, $kernel->handle($request));
        // A second boot() of a booted kernel resets its services. Resetting here removes the
        // session's ID and data and the page's state once, instead of in each request.
        $kernel->boot();
        unset($_SESSION, $_COOKIE[session_name()]);
    });
    Samovar\checkpoint();
}

$request = Request::createFromGlobals();
$response = $kernel->handle($request);
$response->send();
$kernel->terminate($request, $response);
