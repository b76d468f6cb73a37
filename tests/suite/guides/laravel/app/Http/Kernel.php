<?php

declare(strict_types=1);

namespace App\Http;

use Illuminate\Cookie\Middleware\AddQueuedCookiesToResponse;
use Illuminate\Cookie\Middleware\EncryptCookies;
use Illuminate\Foundation\Http\Kernel as HttpKernel;
use Illuminate\Session\Middleware\StartSession;

/** Pages have a session; API routes (`api/…`) have none. */
final class Kernel extends HttpKernel
{
    protected $middlewareGroups = [
        'web' => [EncryptCookies::class, AddQueuedCookiesToResponse::class, StartSession::class],
        'api' => [],
    ];
}
