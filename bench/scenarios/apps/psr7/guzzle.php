<?php

declare(strict_types=1);

/*
 * PSR-7 on a server that has only superglobals: the library creates its request from them, and the
 * response is sent by header() and echo.
 */

namespace Samovar\Bench\Psr7;

use GuzzleHttp\Psr7\ServerRequest;
use Psr\Http\Server\RequestHandlerInterface;

use function Samovar\serve;

function serveByGuzzle(RequestHandlerInterface $handler): void
{
    serve(static function () use ($handler): void {
        $response = $handler->handle(ServerRequest::fromGlobals());
        http_response_code($response->getStatusCode());
        foreach ($response->getHeaders() as $name => $values) {
            foreach ($values as $value) {
                header("$name: $value", false);
            }
        }
        echo $response->getBody();
    });
}
