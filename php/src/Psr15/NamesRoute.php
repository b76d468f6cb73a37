<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr15;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;

/**
 * Reports a request's route to the server. Add it after the router, which stores the route in the
 * request's attributes.
 *
 * It supports the attributes of Slim, Mezzio and league/route, and a string attribute `_route` or
 * `route`.
 */
final class NamesRoute implements MiddlewareInterface
{
    private const SLIM = '__route__';
    private const MEZZIO = 'Mezzio\Router\RouteResult';
    private const TEXTS = ['_route', 'route'];

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $name = self::nameOf($request);
        if ($name !== null) {
            \Samovar\route($name);
        }

        return $handler->handle($request);
    }

    /** Returns the route's name, or its pattern if it has no name. */
    private static function nameOf(ServerRequestInterface $request): ?string
    {
        $slim = $request->getAttribute(self::SLIM);
        if (\is_object($slim) && method_exists($slim, 'getPattern')) {
            return $slim->getName() ?? $slim->getPattern();
        }
        $mezzio = $request->getAttribute(self::MEZZIO);
        $route = \is_object($mezzio) ? $mezzio->getMatchedRoute() : false;
        if ($route) {
            return $route->getName();
        }
        foreach (self::TEXTS as $attribute) {
            $name = $request->getAttribute($attribute);
            if (\is_string($name) && $name !== '') {
                return $name;
            }
        }

        return null;
    }
}
