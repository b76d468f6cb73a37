<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr15;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;

/**
 * Tells the server which route a request has taken: stands behind the router, which says it in the
 * request's attributes.
 *
 * Known are Slim's, Mezzio's and league/route's ways to say it, and an attribute `_route` or `route` that is a text.
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

    /** The route's name; of one without a name its pattern. */
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
