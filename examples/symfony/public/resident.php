<?php

declare(strict_types=1);

/*
 * The same application, booted once per worker:
 *
 *   samovar serve examples/symfony/public/resident.php
 */

use App\Kernel;
use Symfony\Component\HttpFoundation\Request;

use function Samovar\serve;

require dirname(__DIR__) . '/autoload.php';

$kernel = new Kernel($_SERVER['APP_ENV'] ?? 'prod', (bool) ($_SERVER['APP_DEBUG'] ?? false));
$kernel->boot();
// Symfony 5.4 sets PHP's session up by ini_set() when the first request asks for one, and then never
// again: it would be undone after that request. What is set before serve() holds for all of them.
$kernel->getContainer()->get('app.session_factory')->createSession();

serve(static function () use ($kernel): void {
    $request = Request::createFromGlobals();
    $response = $kernel->handle($request);
    $response->send();
    $kernel->terminate($request, $response);
    // Services that keep something for the length of a request let go of it.
    $kernel->getContainer()->get('services_resetter')->reset();
});
