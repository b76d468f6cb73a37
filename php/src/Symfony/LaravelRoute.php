<?php

declare(strict_types=1);

namespace Samovar\Runtime\Symfony;

use Illuminate\Http\Request;

/** Reports the Laravel route of a request to the server. */
final class LaravelRoute
{
    /**
     * Reports the route's name, or its pattern such as "users/{user}" if it has no name. Reports
     * nothing if no route matched.
     */
    public static function tell(Request $request): void
    {
        $route = $request->route();
        if (\is_object($route) && method_exists($route, 'uri')) {
            \Samovar\route($route->getName() ?? $route->uri());
        }
    }
}
