<?php

declare(strict_types=1);

namespace App\Http\Middleware;

use Carbon\Carbon;
use Closure;
use Illuminate\Http\Request;
use Symfony\Component\HttpFoundation\Response;

/**
 * Sets the visitor's language, which is stored in the session. Visitors without one must get the
 * default.
 */
final class SetLocale
{
    public const LOCALES = ['en', 'de'];

    public function handle(Request $request, Closure $next): Response
    {
        $locale = $request->session()->get('locale');
        if ($locale !== null) {
            app()->setLocale($locale);
            Carbon::setLocale($locale);
        }

        return $next($request);
    }
}
