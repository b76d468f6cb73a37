<?php

declare(strict_types=1);

namespace Samovar\Runtime\Laravel;

use Illuminate\Support\ServiceProvider;

/**
 * Adds the driver "samovar" to Laravel's queues, and the connection of this name if
 * config/queue.php has none:
 *
 *     'samovar' => ['driver' => 'samovar', 'queue' => 'jobs', 'after_commit' => false],
 *
 * Then QUEUE_CONNECTION=samovar selects it.
 */
final class QueueServiceProvider extends ServiceProvider
{
    private const CONNECTION = ['driver' => 'samovar', 'queue' => 'jobs', 'after_commit' => false];

    public function register(): void
    {
        $config = $this->app->make('config');
        $connections = $config->get('queue.connections', []);
        $config->set('queue.connections', $connections + ['samovar' => self::CONNECTION]);
        $this->app->resolving('queue', static function (object $manager): void {
            $manager->addConnector('samovar', static fn (): QueueConnector => new QueueConnector());
        });
    }
}
