<?php

declare(strict_types=1);

use Swoole\Http\Request;
use Swoole\Http\Response;

use function Samovar\Bench\Echoing\answer;
use function Samovar\Bench\Swoole\serve;

use const Samovar\Bench\Echoing\HEADERS;

require dirname(__DIR__, 2) . '/peers/swoole/serve.php';
require __DIR__ . '/handler.php';

serve(static function (Request $request, Response $response): void {
    $headers = [];
    foreach (HEADERS as $name) {
        $headers[$name] = $request->header[$name] ?? null;
    }
    [$status, $json] = answer($request->rawContent(), $headers);
    $response->status($status);
    $response->header('Content-Type', 'application/json');
    $response->end($json);
});
