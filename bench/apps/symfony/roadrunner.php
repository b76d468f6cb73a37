<?php

declare(strict_types=1);

use Samovar\Bench\RoadRunner\Request;
use Samovar\Bench\Symfony\Application;
use Symfony\Component\HttpFoundation;

use function Samovar\Bench\RoadRunner\serve;

require dirname(__DIR__, 2) . '/peers/roadrunner/worker.php';
require __DIR__ . '/Application.php';

$application = Application::boot();

serve(static function (Request $request) use ($application): array {
    parse_str($request->query, $query);
    $theirs = new HttpFoundation\Request($query, [], [], $request->cookies, [], $request->server(), $request->body);
    $ours = null;
    $application->handle($theirs, static function (HttpFoundation\Response $answer) use (&$ours): void {
        $ours = [$answer->getStatusCode(), $answer->headers->allPreserveCase(), (string) $answer->getContent()];
    });

    return $ours;
});
