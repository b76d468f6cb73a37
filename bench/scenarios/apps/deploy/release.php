<?php

declare(strict_types=1);

/*
 * Shared code of the entries. A release also contains symfony/, a copy of examples/symfony, and
 * name.php, which returns the release's name. The name is code, too, so that an outdated opcache
 * shows.
 */

namespace Samovar\Bench\Deploy;

use App\Kernel;
use Symfony\Component\HttpFoundation\Request;

const WAIT_MS_MAX = 10_000;

// A release has its own cache, filled before the deploy.
$_SERVER['APP_CACHE_DIR'] = $_ENV['APP_CACHE_DIR'] = __DIR__ . '/var/cache';
$_SERVER['APP_LOG_DIR'] = $_ENV['APP_LOG_DIR'] = __DIR__ . '/var/log';
require __DIR__ . '/symfony/autoload.php';

/** The page for the current request, with the release's name in a header. */
function answer(Kernel $kernel, string $release): void
{
    // Before the session is open: other requests of a visitor would wait for a session, but not for
    // this.
    usleep(1000 * min(WAIT_MS_MAX, max(0, (int) ($_GET['wait_ms'] ?? 0))));
    header('X-Release: ' . $release);
    $request = Request::createFromGlobals();
    $response = $kernel->handle($request);
    $response->send();
    $kernel->terminate($request, $response);
}
