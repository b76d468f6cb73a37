<?php

declare(strict_types=1);

use Samovar\Bench\Symfony\Application;
use Samovar\Request;
use Samovar\Response;
use Symfony\Component\HttpFoundation;

use function Samovar\Bench\Foundation\request;
use function Samovar\Bench\Foundation\response;
use function Samovar\serve;

require dirname(__DIR__) . '/foundation.php';
require __DIR__ . '/Application.php';

$application = Application::boot();

serve(static function (Request $request) use ($application): Response {
    $ours = null;
    $application->handle(request($request), static function (HttpFoundation\Response $theirs) use (&$ours): void {
        $ours = response($theirs);
    });

    return $ours;
});
