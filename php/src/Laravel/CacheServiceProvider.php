<?php

declare(strict_types=1);

namespace Samovar\Runtime\Laravel;

use Illuminate\Support\ServiceProvider;
use Samovar\Cache;

/**
 * Adds the driver "samovar" to Laravel's cache. Configure it among the `stores` of
 * config/cache.php:
 *
 *     'samovar' => ['driver' => 'samovar', 'name' => 'laravel', 'bytes' => 32 << 20],
 *
 * `name` and `bytes` are optional.
 */
final class CacheServiceProvider extends ServiceProvider
{
    private const BYTES = 16 << 20;

    public function register(): void
    {
        $this->app->resolving('cache', static function (object $manager): void {
            $manager->extend('samovar', function (object $app, array $config) use ($manager): object {
                $cache = new Cache($config['name'] ?? 'laravel', $config['bytes'] ?? self::BYTES);
                $prefix = $config['prefix'] ?? $app['config']['cache.prefix'] ?? '';

                return $manager->repository(new CacheStore($cache, $prefix));
            });
        });
    }
}
