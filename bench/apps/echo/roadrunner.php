<?php

declare(strict_types=1);

use Samovar\Bench\RoadRunner\Request;

use function Samovar\Bench\Echoing\answer;
use function Samovar\Bench\RoadRunner\serve;

use const Samovar\Bench\Echoing\HEADERS;

require dirname(__DIR__, 2) . '/peers/roadrunner/worker.php';
require __DIR__ . '/handler.php';

serve(static function (Request $request): array {
    $headers = [];
    foreach (HEADERS as $name) {
        $headers[$name] = $request->header($name);
    }
    [$status, $json] = answer($request->body, $headers);

    return [$status, ['Content-Type' => ['application/json']], $json];
});
