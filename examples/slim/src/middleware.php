<?php

declare(strict_types=1);

namespace App;

use Psr\Http\Message\ResponseInterface as Response;
use Psr\Http\Message\ServerRequestInterface as Request;

// Slim binds middleware to its container, so none of these closures is static.

/** Adds the application's name to the response as a header. */
function named(string $name): callable
{
    return fn (Request $request, Response $response, callable $next): Response =>
        $next($request, $response)->withHeader('X-Answered-By', $name);
}

/** Opens PHP's session for the duration of the route. */
function session(): callable
{
    return function (Request $request, Response $response, callable $next): Response {
        session_start();
        try {
            return $next($request, $response);
        } finally {
            session_write_close();
        }
    };
}

/**
 * Allows access only to these users.
 *
 * @param array<string, string> $users passwords by name
 */
function basicAuth(array $users): callable
{
    return function (Request $request, Response $response, callable $next) use ($users): Response {
        $server = $request->getServerParams();
        $user = (string) ($server['PHP_AUTH_USER'] ?? '');
        if (!isset($users[$user]) || !hash_equals($users[$user], (string) ($server['PHP_AUTH_PW'] ?? ''))) {
            return $response->withStatus(401)->withHeader('WWW-Authenticate', 'Basic realm="Slim example"');
        }

        return $next($request->withAttribute('user', $user), $response);
    };
}
