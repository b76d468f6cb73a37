<?php

declare(strict_types=1);

use Workerman\Protocols\Http\Request;
use Workerman\Protocols\Http\Response;

use function Samovar\Bench\Echoing\answer;
use function Samovar\Bench\Workerman\serve;

use const Samovar\Bench\Echoing\HEADERS;

require dirname(__DIR__, 2) . '/peers/workerman/serve.php';
require __DIR__ . '/handler.php';

serve(static function (Request $request): Response {
    $headers = [];
    foreach (HEADERS as $name) {
        $headers[$name] = $request->header($name);
    }
    [$status, $json] = answer($request->rawBody(), $headers);

    return new Response($status, ['Content-Type' => 'application/json'], $json);
});
