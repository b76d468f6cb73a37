<?php

declare(strict_types=1);

namespace Samovar\Runtime\Octane\Commands;

use Samovar\Runtime\Octane\ServerProcessInspector;
use Samovar\Runtime\Octane\ServerStateFile;

/** For Octane's commands with --server. `samovar` is handled here, all other servers by Octane. */
trait ChoosesServer
{
    private function isForSamovar(): bool
    {
        return ($this->option('server') ?: $this->config('octane.server')) === 'samovar';
    }

    private function config(string $name, mixed $default = null): mixed
    {
        return $this->laravel->make('config')->get($name, $default);
    }

    private function inspector(): ServerProcessInspector
    {
        return $this->laravel->make(ServerProcessInspector::class);
    }

    private function stateFile(): ServerStateFile
    {
        return $this->laravel->make(ServerStateFile::class);
    }
}
