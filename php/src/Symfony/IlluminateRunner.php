<?php

declare(strict_types=1);

namespace Samovar\Runtime\Symfony;

use Illuminate\Container\Container;
use Illuminate\Contracts\Foundation\Application;
use Illuminate\Contracts\Http\Kernel;
use Illuminate\Http\Request;
use Samovar\Runtime\Cycle;
use Samovar\Runtime\Model;
use Samovar\Runtime\Sapi;
use Symfony\Component\Runtime\RunnerInterface;

/** Runs Laravel's HTTP kernel: bootstrapped in advance, and rolled back after each request. */
final class IlluminateRunner implements RunnerInterface
{
    /**
     * @param \Closure(): ?object|null $remake creates the application again
     * @param list<string> $warmup targets, handled by an application that is then discarded
     *
     * @throws \LogicException in the resident model
     */
    public function __construct(
        private Cycle $cycle,
        private Kernel $kernel,
        private ?\Closure $remake,
        private array $warmup,
    ) {
        if (Sapi::isSamovar() && $cycle->model() === Model::Resident) {
            throw new \LogicException(
                "Laravel's kernel keeps the logged-in user between requests: the resident model is not supported\n"
                . 'hint: set SAMOVAR_MODEL=checkpoint, or use Laravel Octane with `octane:start --server=samovar`',
            );
        }
    }

    public function run(): int
    {
        if (Sapi::boots()) {
            $this->cycle->warmUp($this->warmUp(...));
            $this->bootstrap();
        }
        $this->cycle->run(function (): void {
            $request = Request::capture();
            $response = $this->kernel->handle($request);
            LaravelRoute::tell($request);
            $response->send();
            Sapi::finish();
            $this->kernel->terminate($request, $response);
        });

        return 0;
    }

    /**
     * Laravel's services keep data of a request, so another application instance handles these
     * requests.
     */
    private function warmUp(): void
    {
        foreach ($this->remake === null ? [] : $this->warmup as $target) {
            $kernel = ($this->remake)();
            $kernel = $kernel instanceof Application ? $kernel->make(Kernel::class) : $kernel;
            $request = Request::create($target, 'GET', [], [], [], $_SERVER);
            $kernel->terminate($request, $kernel->handle($request));
        }
    }

    private function bootstrap(): void
    {
        $application = $this->kernel->getApplication();
        Container::setInstance($application);
        // Providers need a request while they boot. The first real request replaces this one.
        $application->instance('request', Request::create('http://localhost', 'GET', [], [], [], $_SERVER));
        $this->kernel->bootstrap();
    }
}
