<?php

declare(strict_types=1);

namespace App;

use Closure;
use Illuminate\Container\Container;
use Illuminate\Contracts\Http\Kernel;
use Illuminate\Foundation;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\Facade;
use Symfony\Component\HttpFoundation\Response;

/**
 * One booted application for many requests, in essence like Laravel Octane. Each request uses a
 * clone of the application, so that its bindings and resolved services disappear with the clone.
 * All clones share the services that were resolved at boot. These get the application that they
 * work for, and their state of the last request is removed.
 */
final class Worker
{
    /** The services that Octane resolves at boot, as far as this application has them. */
    private const WARM = [
        'config', 'cookie', 'encrypter', 'files', 'hash', 'log', 'router', 'session', 'session.store',
        'translator', 'url', 'view',
    ];

    private readonly Kernel $kernel;

    public function __construct(private readonly Foundation\Application $application)
    {
        $this->kernel = $application->make(Kernel::class);
        $this->kernel->bootstrap();
        // The URL generator cannot be created without a request; each request replaces it.
        $application->instance('request', Request::create($application->make('config')->get('app.url')));
        array_map($application->make(...), self::WARM);
    }

    /**
     * @param Closure(Response): void $send runs between the response and the end of the request
     */
    public function handle(Request $request, Closure $send): void
    {
        $sandbox = clone $this->application;
        $sandbox->instance('config', clone $this->application->make('config'));
        $this->workFor($sandbox);
        try {
            $response = $this->kernel->handle($request);
            $send($response);
            $this->kernel->terminate($request, $response);
            $this->forgetRequest($sandbox);
        } finally {
            $sandbox->flush();
            $this->workFor($this->application);
        }
    }

    private function workFor(Foundation\Application $application): void
    {
        $application->instance('app', $application);
        $application->instance(Container::class, $application);
        Container::setInstance($application);
        Facade::clearResolvedInstances();
        Facade::setFacadeApplication($application);
        $this->kernel->setApplication($application);
        $application->make('router')->setContainer($application);
        $application->make('session')->setContainer($application);
        $view = $application->make('view');
        $view->setContainer($application);
        $view->share('app', $application);
    }

    private function forgetRequest(Foundation\Application $sandbox): void
    {
        $session = $sandbox->make('session.store');
        $session->setId(null);
        // Last, and including the token against forged requests: the image of the checkpoint model
        // must not contain one.
        $session->flush();
        $sandbox->make('cookie')->flushQueuedCookies();
        $sandbox->make('view')->flushState();
        $sandbox->make('translator')->setLocale($sandbox->make('config')->get('app.locale'));
    }
}
