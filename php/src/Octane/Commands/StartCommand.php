<?php

declare(strict_types=1);

namespace Samovar\Runtime\Octane\Commands;

use Laravel\Octane\Commands\StartCommand as OctaneStartCommand;

/** octane:start with support for --server=samovar. */
class StartCommand extends OctaneStartCommand
{
    use ChoosesServer;

    /** @return int */
    public function handle()
    {
        if (!$this->isForSamovar()) {
            return parent::handle();
        }

        return $this->call('octane:samovar', [
            '--host' => $this->option('host') ?? $this->config('octane.host') ?? '127.0.0.1',
            '--port' => $this->option('port') ?? $this->config('octane.port') ?? '8000',
            '--workers' => $this->option('workers'),
            '--max-requests' => $this->option('max-requests'),
            '--watch' => $this->option('watch'),
            '--poll' => $this->option('poll'),
            '--log-level' => $this->hasOption('log-level') ? $this->option('log-level') : null,
        ]);
    }
}
