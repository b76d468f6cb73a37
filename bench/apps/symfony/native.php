<?php

declare(strict_types=1);

use Samovar\Bench\Symfony\Application;
use Samovar\Request;
use Samovar\Response;
use Symfony\Component\HttpFoundation;

use function Samovar\serve;

require __DIR__ . '/Application.php';

$application = Application::boot();

serve(static function (Request $request) use ($application): Response {
    $theirs = new HttpFoundation\Request(
        $request->query(),
        $request->form(),
        [],
        $request->cookies(),
        $request->files(),
        $request->server(),
    );
    $ours = null;
    $application->handle($theirs, static function (HttpFoundation\Response $response) use (&$ours): void {
        $ours = new Response(
            $response->getContent(),
            $response->getStatusCode(),
            $response->headers->allPreserveCase(),
        );
    });

    return $ours;
});
