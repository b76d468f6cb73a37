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
 * One booted application for many requests, in essence as Laravel Octane does it: each request works with a clone of
 * the application, so that what it binds and resolves goes with the clone. Services that were resolved at the boot are
 * shared by all clones: they are told which application they work for, and lose what the request left in them.
 */
final class Worker
{
    /** The services that Octane resolves at the boot, as far as this application has them. */
    private const WARM = [
        'config', 'cookie', 'encrypter', 'files', 'hash', 'log', 'router', 'session', 'session.store',
        'translator', 'url', 'view',
    ];

    private readonly Kernel $kernel;

    public function __construct(private readonly Foundation\Application $application)
    {
        $this->kernel = $application->make(Kernel::class);
        $this->kernel->bootstrap();
        // The generator of URLs cannot be made without one; each request takes its place.
        $application->instance('request', Request::create($application->make('config')->get('app.url')));
        array_map($application->make(...), self::WARM);
    }

    /**
     * @param Closure(Response): void $send what is done between the answer and the end of the request
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
        // Last, and with the token against forged requests: the image of the checkpoint model must hold none.
        $session->flush();
        $sandbox->make('cookie')->flushQueuedCookies();
        $sandbox->make('view')->flushState();
        $sandbox->make('translator')->setLocale($sandbox->make('config')->get('app.locale'));
    }
}
