<?php

declare(strict_types=1);

/*
 * The same application, booted once per start of the server; each request begins at checkpoint():
 *
 *   samovar serve examples/symfony/public/checkpoint.php
 *
 * Everywhere else (php-fpm, php -S, samovar with a folder) it is what index.php is.
 */

use App\Kernel;
use Symfony\Component\HttpFoundation\Request;

require dirname(__DIR__) . '/autoload.php';

$kernel = new Kernel($_SERVER['APP_ENV'] ?? 'prod', (bool) ($_SERVER['APP_DEBUG'] ?? false));

if (function_exists('Samovar\checkpoint')) {
    // What one page needs, most pages need: classes, services, templates and compiled patterns are there
    // ahead. The visitor is one who comes back, so that what reads a session's cookie has run, too.
    Samovar\warmup(static function () use ($kernel): void {
        $_COOKIE = [session_name() => str_repeat('0', 26)];
        $request = Request::create('/', cookies: $_COOKIE, server: $_SERVER);
        $kernel->terminate($request, $kernel->handle($request));
        // A booted kernel resets its services when it is booted again after a request. Here rather than
        // in each request: the session's id and data go, and what services kept of the page.
        $kernel->boot();
        unset($_SESSION, $_COOKIE[session_name()]);
    });
    Samovar\checkpoint();
}

$request = Request::createFromGlobals();
$response = $kernel->handle($request);
$response->send();
$kernel->terminate($request, $response);
