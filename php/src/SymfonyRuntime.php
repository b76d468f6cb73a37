<?php

declare(strict_types=1);

namespace Samovar\Runtime;

use Illuminate\Contracts\Foundation\Application as IlluminateApplication;
use Illuminate\Contracts\Http\Kernel as IlluminateKernel;
use Psr\Http\Server\RequestHandlerInterface;
use Samovar\Runtime\Psr17\Discovery;
use Samovar\Runtime\Symfony\HttpKernelRunner;
use Samovar\Runtime\Symfony\IlluminateRunner;
use Samovar\Runtime\Symfony\Psr15Runner;
use Samovar\Runtime\Symfony\RepeatedRunner;
use Samovar\Runtime\Symfony\ResponseRunner;
use Symfony\Component\Console\Application as ConsoleApplication;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\HttpKernelInterface;
use Symfony\Component\Runtime\ResolverInterface;
use Symfony\Component\Runtime\RunnerInterface;
use Symfony\Component\Runtime\SymfonyRuntime as BaseRuntime;

/**
 * Symfony's runtime with the application booted in advance:
 * APP_RUNTIME=Samovar\Runtime\SymfonyRuntime.
 *
 * Options in addition to those of the parent class:
 *
 * - "model": "checkpoint" (the default) or "resident"; without it, SAMOVAR_MODEL is used
 * - "warmup": the targets that a kernel handles during the boot; by default those of
 *   APP_SAMOVAR_WARMUP, or ["/"]; [] disables the warm-up
 *
 * It also runs PSR-15 handlers and Laravel's HTTP kernel. Under another SAPI, and for the console,
 * it behaves like its parent class.
 */
class SymfonyRuntime extends BaseRuntime
{
    private Cycle $cycle;
    /** @var \Closure(): ?object|null creates the application again */
    private ?\Closure $remake = null;
    /** @var list<string>|null null: not configured */
    private ?array $warmup;

    /**
     * @param array<string, mixed> $options
     *
     * @throws \InvalidArgumentException when the model does not exist
     */
    public function __construct(array $options = [])
    {
        parent::__construct($options);
        $this->cycle = new Cycle(Model::chosen($options['model'] ?? null));
        $listed = $_SERVER['APP_SAMOVAR_WARMUP'] ?? $_ENV['APP_SAMOVAR_WARMUP'] ?? null;
        $this->warmup = $options['warmup']
            ?? ($listed === null ? null : array_values(array_filter(array_map(trim(...), explode(',', $listed)))));
    }

    public function getResolver(callable $callable, ?\ReflectionFunction $reflector = null): ResolverInterface
    {
        $resolver = parent::getResolver($callable, $reflector);
        $this->remake = static function () use ($resolver): ?object {
            [$application, $arguments] = $resolver->resolve();

            return $application(...$arguments);
        };

        return $resolver;
    }

    public function getRunner(?object $application): RunnerInterface
    {
        if ($application instanceof IlluminateApplication) {
            $application = $application->make(IlluminateKernel::class);
        }
        if ($application instanceof RequestHandlerInterface) {
            return new Psr15Runner($this->cycle, $application, $this->warmup ?? []);
        }
        if ($application instanceof IlluminateKernel) {
            return new IlluminateRunner($this->cycle, $application, $this->remake, $this->warmup ?? []);
        }
        $isConsole = $application instanceof ConsoleApplication || $application instanceof Command;
        if (!Sapi::isSamovar() || $isConsole || $application === null || $application instanceof RunnerInterface) {
            return parent::getRunner($application);
        }
        if ($application instanceof HttpKernelInterface) {
            return new HttpKernelRunner($this->cycle, $application, $this->warmup ?? ['/']);
        }
        if ($application instanceof Response) {
            return new ResponseRunner($this->cycle, $application, $this->remake);
        }

        return new RepeatedRunner($this->cycle, parent::getRunner($application));
    }

    protected function getArgument(\ReflectionParameter $parameter, ?string $type): mixed
    {
        $wantsRequest = $type === Request::class || ($type === 'array' && $parameter->name === 'request');
        if ($wantsRequest && Sapi::isSamovar()) {
            // The application is created from the request, so only the code up to this point can
            // run in advance.
            $this->cycle->checkpoint();
        }
        if ($type !== null && Discovery::knows($type)) {
            return Discovery::find($type);
        }

        return parent::getArgument($parameter, $type);
    }
}
