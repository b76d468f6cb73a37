<?php

declare(strict_types=1);

/*
 * The same application, booted once per worker:
 *
 *     samovar serve examples/symfony/public/resident.php
 */

use App\Kernel;
use Symfony\Component\HttpFoundation\Request;

use function Samovar\serve;

require dirname(__DIR__) . '/autoload.php';

$kernel = new Kernel($_SERVER['APP_ENV'] ?? 'prod', (bool) ($_SERVER['APP_DEBUG'] ?? false));
$kernel->boot();
// Symfony 5.4 configures PHP's session with ini_set() only once, in the first request that uses it.
// The server would undo those settings after that request. Settings made before serve() apply to
// all requests.
$kernel->getContainer()->get('app.session_factory')->createSession();

serve(static function () use ($kernel): void {
    $request = Request::createFromGlobals();
    $response = $kernel->handle($request);
    $response->send();
    $kernel->terminate($request, $response);
    // Resets services that keep data of a request.
    $kernel->getContainer()->get('services_resetter')->reset();
});
