<?php

declare(strict_types=1);

namespace Samovar\Runtime\Octane\Commands;

use Laravel\Octane\Commands\StatusCommand as OctaneStatusCommand;

/** octane:status with support for --server=samovar. */
class StatusCommand extends OctaneStatusCommand
{
    use ChoosesServer;

    /** @return int 1 when the server is not running */
    public function handle()
    {
        if (!$this->isForSamovar()) {
            return parent::handle();
        }
        $isRunning = $this->inspector()->serverIsRunning();
        $this->info($isRunning ? 'Octane server is running.' : 'Octane server is not running.');

        return $isRunning ? 0 : 1;
    }
}
