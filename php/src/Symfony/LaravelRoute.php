<?php

declare(strict_types=1);

namespace Samovar\Runtime\Symfony;

use Illuminate\Http\Request;

/** Tells the server which of Laravel's routes has answered. */
final class LaravelRoute
{
    /** Its name; of one without a name its pattern, such as "users/{user}". What no route has answered has none. */
    public static function tell(Request $request): void
    {
        $route = $request->route();
        if (\is_object($route) && method_exists($route, 'uri')) {
            \Samovar\route($route->getName() ?? $route->uri());
        }
    }
}
