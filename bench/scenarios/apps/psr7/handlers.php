<?php

declare(strict_types=1);

/*
 * Loads PSR-7, this repository's package, and the workloads' handlers as PSR-15 handlers. They call
 * the same functions that the workloads' resident.php calls with superglobals.
 */

use Psr\Http\Server\RequestHandlerInterface;

require '/usr/share/php/Psr/Http/Message/autoload.php';
require '/usr/share/php/Psr/Http/Message/factory-autoload.php';
require dirname(__DIR__, 4) . '/php/autoload.php';
if (!interface_exists(RequestHandlerInterface::class)) {
    // Debian 12 does not have it: the package's tests contain a substitute.
    require dirname(__DIR__, 4) . '/php/tests/fakes/psr15.php';
}
require dirname(__DIR__, 3) . '/apps/hello/handler.php';
require dirname(__DIR__, 3) . '/apps/echo/handler.php';
require __DIR__ . '/Hello.php';
require __DIR__ . '/Echoing.php';
