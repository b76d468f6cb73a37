<?php

declare(strict_types=1);

namespace Samovar\Runtime\Octane\Commands;

use Laravel\Octane\Commands\ReloadCommand as OctaneReloadCommand;

/** octane:reload with support for --server=samovar. */
class ReloadCommand extends OctaneReloadCommand
{
    use ChoosesServer;

    /** @return int */
    public function handle()
    {
        if (!$this->isForSamovar()) {
            return parent::handle();
        }
        if (!$this->inspector()->serverIsRunning()) {
            $this->error('Octane server is not running.');

            return 1;
        }
        $this->info('Reloading workers...');
        try {
            $this->inspector()->reloadServer();
        } catch (\RuntimeException $error) {
            $this->error($error->getMessage());

            return 1;
        }

        return 0;
    }
}
