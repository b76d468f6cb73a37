<?php

declare(strict_types=1);

use Samovar\Bench\Symfony\Application;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;

require __DIR__ . '/Application.php';

$application = Application::boot();

$handler = static function () use ($application): void {
    $application->handle(Request::createFromGlobals(), static fn (Response $response) => $response->send());
    // A worker's session keeps its number: the next visitor without a cookie would get none.
    session_id('');
};

while (frankenphp_handle_request($handler)) {
    continue;
}
