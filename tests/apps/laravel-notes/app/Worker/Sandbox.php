<?php

declare(strict_types=1);

namespace App\Worker;

use Carbon\Carbon;
use Closure;
use Illuminate\Container\Container;
use Illuminate\Contracts\Auth\Access\Gate;
use Illuminate\Contracts\Http\Kernel;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Events\Dispatcher;
use Illuminate\Foundation\Application;
use Illuminate\Foundation\Providers\FoundationServiceProvider;
use Illuminate\Http\Request;
use Illuminate\Pagination\PaginationState;
use Illuminate\Support\Facades\Facade;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\VarDumper\VarDumper;

/**
 * One booted application for many requests, of which each uses a clone. All clones share the
 * services that the boot has resolved, and these services get a reference to the current clone. All
 * other services are created by the clone and destroyed with it.
 */
final class Sandbox
{
    private Kernel $kernel;
    private string $locale;
    private string $timezone;

    public function __construct(private Application $application)
    {
        $this->kernel = $application->make(Kernel::class);
        // Providers need a request while they boot. Each real request replaces this one.
        $application->instance('request', Request::create($_SERVER['APP_URL'] ?? 'http://localhost'));
        $this->kernel->bootstrap();
        $application->make('auth');
        $application->make(Gate::class);
        $this->locale = Carbon::getLocale();
        $this->timezone = date_default_timezone_get();
    }

    /** Handles the request in the superglobals. */
    public function answer(): void
    {
        $this->handle(Request::capture(), static fn (Response $response) => $response->send());
    }

    /** @param Closure(Response): mixed $send */
    public function handle(Request $request, Closure $send): void
    {
        $sandbox = $this->open();
        // Not in `finally`, because exit() and dd() must also run it.
        register_shutdown_function(fn () => $this->close());
        $response = $this->kernel->handle($request);
        $send($response);
        $this->kernel->terminate($request, $response);
        $route = $request->route();
        $route === null || $route->flushController();
        $sandbox->flush();
    }

    private function open(): Application
    {
        $sandbox = clone $this->application;
        $sandbox->instance('config', clone $this->application->make('config'));
        $sandbox->instance('events', $events = clone $this->application->make('events'));
        $this->workFor($sandbox);
        $url = $sandbox->make('url');
        $url->setSessionResolver(static fn () => $sandbox->make('session'));
        $this->tellModels($events);
        $this->forgetDumper();

        return $sandbox;
    }

    /**
     * The dumper remembers that it has sent its script and style. Laravel versions after 8 have
     * their own dumper.
     */
    private function forgetDumper(): void
    {
        VarDumper::setHandler(null);
        $provider = $this->application->getProvider(FoundationServiceProvider::class);
        if (method_exists($provider, 'registerDumper')) {
            $provider->registerDumper();
        }
    }

    private function close(): void
    {
        foreach ($this->application->make('db')->getConnections() as $connection) {
            $connection->rollBack(0);
        }
        Carbon::setLocale($this->locale);
        date_default_timezone_set($this->timezone);
        $this->workFor($this->application);
        $this->tellModels($this->application->make('events'));
    }

    private function workFor(Application $application): void
    {
        $application->instance('app', $application);
        $application->instance(Container::class, $application);
        Container::setInstance($application);
        Facade::clearResolvedInstances();
        Facade::setFacadeApplication($application);
        PaginationState::resolveUsing($application);
        $this->kernel->setApplication($application);
        $router = $application->make('router');
        $router->setContainer($application);
        foreach ($router->getRoutes() as $route) {
            $route->setContainer($application);
        }
        $auth = $application->make('auth');
        $auth->setApplication($application);
        $auth->forgetGuards();
        $application->make(Gate::class)->setContainer($application);
    }

    private function tellModels(Dispatcher $events): void
    {
        Model::setEventDispatcher($events);
    }
}
