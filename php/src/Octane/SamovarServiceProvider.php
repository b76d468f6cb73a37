<?php

declare(strict_types=1);

namespace Samovar\Runtime\Octane;

use Illuminate\Support\ServiceProvider;
use Laravel\Octane\Contracts\Client;
use Laravel\Octane\Contracts\DispatchesTasks;

/**
 * Adds the server `samovar` to Laravel Octane: to octane:start, octane:reload, octane:stop and
 * octane:status.
 *
 * Settings in config/octane.php:
 *
 * - octane.samovar.binary: the program; by default it is searched on PATH
 * - octane.samovar.control: the path of the control socket
 * - octane.samovar.tasks: "sequential" makes Octane::concurrently() run one task after another
 */
final class SamovarServiceProvider extends ServiceProvider
{
    public function register(): void
    {
        $this->app->bind(ServerStateFile::class, fn () => new ServerStateFile(
            $this->config('octane.state_file') ?? $this->app->storagePath() . '/logs/octane-server-state.json',
        ));
        $this->app->bind(Binary::class, fn () => Binary::find(
            $this->config('octane.samovar.binary'),
            $this->app->basePath(),
        ));
        $this->app->bind(ServerProcessInspector::class, fn ($app) => new ServerProcessInspector(
            $app->make(ServerStateFile::class),
            fn () => $app->make(Binary::class),
        ));
    }

    public function boot(): void
    {
        if (!interface_exists(Client::class)) {
            return;
        }
        // Runs after Octane's own provider, in either order of registration: the last command of a
        // name wins.
        $this->app->booted(function (): void {
            if ($this->app->runningInConsole()) {
                $this->commands([
                    Commands\StartCommand::class,
                    Commands\StartSamovarCommand::class,
                    Commands\ReloadCommand::class,
                    Commands\StopCommand::class,
                    Commands\StatusCommand::class,
                ]);
            }
            if ($this->app->bound(Client::class) && $this->app->make(Client::class) instanceof SamovarClient) {
                $this->refuseWhatIsNotThere();
            }
        });
    }

    /** Octane::table() reports on its own that there are no tables. */
    private function refuseWhatIsNotThere(): void
    {
        if ($this->config('octane.samovar.tasks') !== 'sequential') {
            $this->app->instance(DispatchesTasks::class, new TaskDispatcher());
        }
        // Not a static closure: the cache manager binds it to itself.
        $this->app->make('cache')->extend('octane', fn () => throw NotAvailable::cache());
    }

    private function config(string $name): mixed
    {
        return $this->app->make('config')->get($name);
    }
}
