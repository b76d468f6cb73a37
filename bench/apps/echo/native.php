<?php

declare(strict_types=1);

use Samovar\Request;
use Samovar\Response;

use function Samovar\Bench\Echoing\answer;
use function Samovar\serve;

use const Samovar\Bench\Echoing\HEADERS;

require __DIR__ . '/handler.php';

serve(static function (Request $request): Response {
    $headers = [];
    foreach (HEADERS as $name) {
        $headers[$name] = $request->header($name);
    }
    [$status, $json] = answer($request->body(), $headers);

    return new Response($json, $status, ['Content-Type' => 'application/json']);
});
