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

/** Laravel's HTTP kernel, bootstrapped ahead and rolled back after each request. */
final class IlluminateRunner implements RunnerInterface
{
    /**
     * @param \Closure(): ?object|null $remake makes the application again
     * @param list<string> $warmup targets, answered by an application that is thrown away
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
                "Laravel's kernel does not forget who was logged in: it cannot be resident by itself\n"
                . 'hint: SAMOVAR_MODEL=checkpoint, or Laravel Octane with `octane:start --server=samovar`',
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

    /** Services of Laravel's keep much of a request, so these requests are another application's. */
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
        // Providers ask for a request while they boot; the first real one takes this one's place.
        $application->instance('request', Request::create('http://localhost', 'GET', [], [], [], $_SERVER));
        $this->kernel->bootstrap();
    }
}
