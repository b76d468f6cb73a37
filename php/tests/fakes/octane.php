<?php

declare(strict_types=1);

/* The parts of laravel/octane that the driver uses. Debian has no package for it. */

namespace Laravel\Octane {
    use Symfony\Component\HttpFoundation\Response;

    class RequestContext
    {
        public function __construct(public array $data = [])
        {
        }
    }

    class OctaneResponse
    {
        public function __construct(public Response $response, public ?string $outputBuffer = null)
        {
        }
    }

    class Octane
    {
        public static function formatExceptionForClient(\Throwable $e, bool $debug = false): string
        {
            return $debug ? (string) $e : 'Internal server error.';
        }
    }
}

namespace Laravel\Octane\Contracts {
    use Illuminate\Foundation\Application;
    use Illuminate\Http\Request;
    use Laravel\Octane\OctaneResponse;
    use Laravel\Octane\RequestContext;

    interface Client
    {
        public function marshalRequest(RequestContext $context): array;

        public function respond(RequestContext $context, OctaneResponse $response): void;

        public function error(\Throwable $e, Application $app, Request $request, RequestContext $context): void;
    }

    interface Worker
    {
        public function boot(): void;

        public function handle(Request $request, RequestContext $context): void;

        /** @return mixed */
        public function handleTask($data);

        public function terminate(): void;
    }

    interface DispatchesTasks
    {
        public function resolve(array $tasks, int $waitMilliseconds = 3000): array;

        public function dispatch(array $tasks): void;
    }

    interface ServerProcessInspector
    {
        public function serverIsRunning(): bool;

        public function reloadServer(): void;

        public function stopServer(): bool;
    }
}

namespace Laravel\Octane\Commands {
    class Command extends \Illuminate\Console\Command
    {
        public function raw($string): void
        {
            $this->output->writeln($string);
        }

        public function requestInfo($request): void
        {
            $this->output->writeln("{$request['statusCode']} {$request['method']} {$request['url']}");
        }
    }

    class StartCommand extends Command
    {
        public $signature = 'octane:start {--server=} {--host=} {--port=} {--workers=auto} {--max-requests=500}
            {--watch} {--poll} {--log-level=}';

        public function handle()
        {
            $this->line('Octane: start');

            return 0;
        }
    }

    class ReloadCommand extends Command
    {
        public $signature = 'octane:reload {--server=}';

        public function handle()
        {
            $this->line('Octane: reload');

            return 0;
        }
    }

    class StopCommand extends Command
    {
        public $signature = 'octane:stop {--server=}';

        public function handle()
        {
            $this->line('Octane: stop');

            return 0;
        }
    }

    class StatusCommand extends Command
    {
        public $signature = 'octane:status {--server=}';

        public function handle()
        {
            $this->line('Octane: status');

            return 0;
        }
    }
}

namespace Laravel\Octane\Commands\Concerns {
    trait InteractsWithEnvironmentVariables
    {
        public function forgetEnvironmentVariables()
        {
        }
    }

    trait InteractsWithServers
    {
        protected function startServerWatcher()
        {
            return new class () {
                public function __call($method, $parameters)
                {
                    return null;
                }
            };
        }

        protected function writeServerRunningMessage()
        {
            $this->line("Server running at {$this->getHost()}:{$this->getPort()}");
        }

        protected function getHost()
        {
            return $this->option('host') ?? '127.0.0.1';
        }

        protected function getPort()
        {
            return $this->option('port') ?? '8000';
        }

        public function getSubscribedSignals(): array
        {
            return [];
        }

        public function handleSignal(int $signal): void
        {
        }
    }
}
