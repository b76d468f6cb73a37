<?php

declare(strict_types=1);

use Samovar\Bench\Symfony\Application;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;

require __DIR__ . '/Application.php';

$application = Application::boot();

$handler = static function () use ($application): void {
    $application->handle(Request::createFromGlobals(), static fn (Response $response) => $response->send());
};

while (frankenphp_handle_request($handler)) {
    continue;
}
