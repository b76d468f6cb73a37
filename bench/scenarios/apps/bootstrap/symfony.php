<?php

declare(strict_types=1);

/*
 * bench/apps/symfony with a new kernel and container in each request of a resident process. Classes
 * are loaded once.
 */

use App\Kernel;
use Symfony\Component\HttpFoundation\Request;

use function Samovar\serve;

require dirname(__DIR__, 3) . '/apps/symfony/environment.php';
require dirname(__DIR__, 4) . '/examples/symfony/autoload.php';

serve(static function (): void {
    $kernel = new Kernel('prod', false);
    $request = Request::createFromGlobals();
    $response = $kernel->handle($request);
    $response->send();
    $kernel->terminate($request, $response);
});
