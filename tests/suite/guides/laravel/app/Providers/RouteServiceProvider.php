<?php

declare(strict_types=1);

namespace App\Providers;

use Illuminate\Foundation\Support\Providers\RouteServiceProvider as BaseProvider;
use Illuminate\Support\Facades\Route;

final class RouteServiceProvider extends BaseProvider
{
    public function boot(): void
    {
        $this->routes(static function (): void {
            Route::middleware('web')->group(base_path('routes/web.php'));
        });
    }
}
