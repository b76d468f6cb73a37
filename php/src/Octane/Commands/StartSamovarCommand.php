<?php

declare(strict_types=1);

namespace Samovar\Runtime\Octane\Commands;

use Laravel\Octane\Commands\Command;
use Laravel\Octane\Commands\Concerns\InteractsWithEnvironmentVariables;
use Laravel\Octane\Commands\Concerns\InteractsWithServers;
use Samovar\Runtime\Octane\Binary;
use Samovar\Runtime\Octane\ServerProcessInspector;
use Samovar\Runtime\Octane\ServerStateFile;
use Symfony\Component\Console\Command\SignalableCommandInterface;
use Symfony\Component\Process\Process;

/** octane:samovar, which octane:start --server=samovar calls. Runs until the server ends. */
class StartSamovarCommand extends Command implements SignalableCommandInterface
{
    use InteractsWithEnvironmentVariables;
    use InteractsWithServers;

    private const POLL_US = 200_000;
    private const START_WAIT_US = 10_000;
    /** The server's own drain timeout is half of this. */
    private const STOP_SECONDS_MAX = 60.0;

    /** @var string */
    public $signature = 'octane:samovar
        {--host=127.0.0.1 : The IP address the server should bind to}
        {--port= : The port the server should be available on}
        {--workers=auto : The number of workers that should be available to handle requests}
        {--max-requests=500 : The number of requests after which a worker returns to the state after the boot}
        {--watch : Automatically reload the server when the application is modified}
        {--poll : Use file system polling while watching in order to watch files over a network}
        {--log-level= : Log messages at or above the specified log level}';

    /** @var string */
    public $description = 'Start the Octane Samovar server';

    /** @var bool */
    protected $hidden = true;

    /** @return int the server's exit status */
    public function handle(ServerProcessInspector $inspector, ServerStateFile $stateFile)
    {
        if ($inspector->serverIsRunning()) {
            $this->error('Samovar is already running.');

            return 1;
        }
        $binary = $this->laravel->make(Binary::class);
        $this->installWorker();
        $stateFile->writeState($this->state());
        $this->forgetEnvironmentVariables();

        return $this->keepRunning($this->start($binary, $stateFile), $inspector);
    }

    /**
     * Copies the worker script to public/, so that the server also serves the files of that folder.
     */
    private function installWorker(): void
    {
        $script = $this->workerScript();
        if (!is_file($script) && !copy(\dirname(__DIR__) . '/samovar-worker.php', $script)) {
            throw new \RuntimeException("cannot write the worker script to `$script`");
        }
    }

    private function workerScript(): string
    {
        return $this->laravel->basePath('public/samovar-worker.php');
    }

    /** @return array<string, mixed> */
    private function state(): array
    {
        $config = $this->laravel->make('config');

        return [
            'appName' => $config->get('app.name', 'Laravel'),
            'host' => $this->getHost(),
            'port' => $this->getPort(),
            'control' => $this->control(),
            'workers' => $this->option('workers'),
            'maxRequests' => $this->option('max-requests'),
            'octaneConfig' => $config->get('octane'),
        ];
    }

    private function control(): string
    {
        $configured = $this->laravel->make('config')->get('octane.samovar.control');
        $application = substr(hash('sha256', $this->laravel->basePath()), 0, 12);

        // A socket path is limited to 107 bytes, and the path of storage/ may be longer.
        return $configured ?? sys_get_temp_dir() . "/octane-samovar-$application-{$this->getPort()}.sock";
    }

    private function start(Binary $binary, ServerStateFile $stateFile): Process
    {
        $process = new Process($this->command($binary), $this->laravel->basePath(), [
            'APP_ENV' => $this->laravel->environment(),
            'APP_BASE_PATH' => $this->laravel->basePath(),
            'LARAVEL_OCTANE' => '1',
            'MAX_REQUESTS' => (string) $this->option('max-requests'),
        ], null, null);
        $process->start();
        $stateFile->writeProcessId((int) $process->getPid());

        return $process;
    }

    /** @return list<string> */
    private function command(Binary $binary): array
    {
        $host = str_contains($this->getHost(), ':') ? "[{$this->getHost()}]" : $this->getHost();
        $command = [
            $binary->path(), 'serve', $this->workerScript(),
            '--listen', "$host:{$this->getPort()}",
            '--control', $this->control(),
            '--workers', (string) $this->option('workers'),
            '--access-log', '-',
            '--access-log-format', 'json',
        ];
        if ($this->option('log-level') !== null) {
            array_push($command, '--log-level', strtolower($this->option('log-level')));
        }

        return $command;
    }

    private function keepRunning(Process $server, ServerProcessInspector $inspector): int
    {
        $this->writeServerRunningMessage();
        $watcher = $this->startServerWatcher();
        try {
            while ($server->isRunning()) {
                $this->writeServerOutput($server);
                if ($watcher->isRunning() && $watcher->getIncrementalOutput()) {
                    $this->reload($inspector);
                } elseif ($watcher->isTerminated()) {
                    $this->error('The file watcher exited. Check that Node and chokidar are installed.');
                    $this->line((string) $watcher->getErrorOutput());

                    return 1;
                }
                usleep(self::POLL_US);
            }
            $this->writeServerOutput($server);
        } finally {
            $server->stop(self::STOP_SECONDS_MAX, SIGTERM);
            $this->stopServer();
        }

        return $server->getExitCode() ?? 1;
    }

    /**
     * If the changed code does not boot, the error is printed and the application continues
     * unchanged.
     */
    private function reload(ServerProcessInspector $inspector): void
    {
        $this->info('Application change detected. Reloading workers…');
        try {
            $inspector->reloadServer();
        } catch (\RuntimeException $error) {
            $this->error($error->getMessage());
        }
    }

    /**
     * Prints requests from the access log on stdout in Octane's format. Prints other lines
     * unchanged.
     *
     * @param Process $server
     */
    protected function writeServerOutput($server): void
    {
        [$output, $errors] = [$server->getIncrementalOutput(), $server->getIncrementalErrorOutput()];
        $server->clearOutput();
        $server->clearErrorOutput();
        foreach (array_filter(explode("\n", $output)) as $line) {
            $request = json_decode($line, true);
            if (!\is_array($request) || !isset($request['status'])) {
                $this->raw($line);
            } elseif ($this->laravel->environment('local', 'testing')) {
                $this->requestInfo([
                    'method' => $request['method'] ?? '',
                    'url' => $request['uri'] ?? $request['target'] ?? '/',
                    'statusCode' => $request['status'],
                    'duration' => (float) ($request['duration_ms'] ?? 0),
                    'memory' => $request['memory_bytes'] ?? null,
                ]);
            }
        }
        foreach (array_filter(explode("\n", $errors)) as $line) {
            $this->raw($line);
        }
    }

    protected function stopServer(): void
    {
        $this->callSilent('octane:stop', ['--server' => 'samovar']);
    }
}
