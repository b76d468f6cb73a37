<?php

declare(strict_types=1);

/* A typical worker script for Samovar. */

require dirname(__DIR__) . '/libraries.php';

use Samovar\Request;
use Samovar\Response;

$warm = false;
Samovar\warmup(static function () use (&$warm): void {
    $warm = true;
});

$serve = static fn (Request $request): Response => new Response(
    (static function () use ($request, $warm) {
        yield json_encode([
            'method' => $request->method(),
            'uri' => $request->uri(),
            'path' => $request->path(),
            'query' => $request->query(),
            'queryString' => $request->queryString(),
            'form' => $request->form(),
            'cookies' => $request->cookies(),
            'header' => $request->header('X-Test'),
            'none' => $request->header('X-None', 'default'),
            'body' => $request->body(),
            'stream' => stream_get_contents($request->bodyStream()),
            'host' => $request->host(),
            'secure' => $request->isSecure(),
            'address' => $request->remoteAddress(),
            'protocol' => $request->protocol(),
            'headers' => isset($request->headers()['x-test']),
            'server' => $request->server()['REQUEST_METHOD'],
            'attribute' => (static function () use ($request): array {
                $request->setAttribute('a', 1);

                return [$request->attribute('a'), $request->attribute('b', 2), $request->attributes()];
            })(),
        ], JSON_THROW_ON_ERROR);
    })(),
    202,
    ['Content-Type' => 'application/json', 'X-Two' => ['a', 'b'], 'X-Warm' => $warm ? 'yes' : 'no'],
);

Samovar\serve(
    static fn (Request $request): Response|string => $request->path() === '/text' ? 'text' : $serve($request),
);
