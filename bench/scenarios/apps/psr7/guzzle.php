<?php

declare(strict_types=1);

/*
 * PSR-7 where a server has superglobals only: the library makes its request of them, and the answer goes out by
 * header() and echo.
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
