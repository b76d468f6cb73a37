<?php

declare(strict_types=1);

/*
 * PSR-7 with nyholm/psr7 alone: its request is filled from Samovar's native one before the handler
 * is called.
 */

namespace Samovar\Bench\Psr7;

use Nyholm\Psr7\ServerRequest;
use Nyholm\Psr7\Stream;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Samovar\Request;
use Samovar\Response;
use Samovar\Runtime\Psr15\Answer;

use function Samovar\serve;

function serveByNyholm(RequestHandlerInterface $handler): void
{
    serve(static fn (Request $request): Response
        => Answer::of($handler->handle(nyholmRequest($request)), $request->method()));
}

/** Converts the requests of these workloads, which have no forms and no uploads. */
function nyholmRequest(Request $request): ServerRequestInterface
{
    $scheme = $request->isSecure() ? 'https' : 'http';
    $headers = $request->headers();
    $made = new ServerRequest(
        $request->method(),
        "$scheme://" . ($headers['host'] ?? $request->host()) . $request->uri(),
        $headers,
        Stream::create($request->bodyStream()),
        substr($request->protocol(), \strlen('HTTP/')),
        $request->server(),
    );

    return $made->withCookieParams($request->cookies())->withQueryParams($request->query());
}
