<?php

declare(strict_types=1);

namespace Samovar\Runtime\Octane\Commands;

use Laravel\Octane\Commands\StopCommand as OctaneStopCommand;

/** octane:stop with support for --server=samovar. */
class StopCommand extends OctaneStopCommand
{
    use ChoosesServer;

    /** @return int */
    public function handle()
    {
        if (!$this->isForSamovar()) {
            return parent::handle();
        }
        if (!$this->inspector()->serverIsRunning()) {
            $this->stateFile()->delete();
            $this->error('Samovar is not running.');

            return 1;
        }
        $this->info('Stopping server...');
        if (!$this->inspector()->stopServer()) {
            $this->error('Failed to stop Samovar.');

            return 1;
        }
        $this->stateFile()->delete();

        return 0;
    }
}
