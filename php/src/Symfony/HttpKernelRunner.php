<?php

declare(strict_types=1);

namespace Samovar\Runtime\Symfony;

use Samovar\Runtime\Cycle;
use Samovar\Runtime\Model;
use Samovar\Runtime\Sapi;
use Symfony\Bundle\DebugBundle\DebugBundle;
use Symfony\Component\ErrorHandler\ErrorHandler;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\HttpKernelInterface;
use Symfony\Component\HttpKernel\KernelInterface;
use Symfony\Component\HttpKernel\TerminableInterface;
use Symfony\Component\Runtime\RunnerInterface;
use Symfony\Component\VarDumper\VarDumper;

/** Runs a Symfony kernel: boots it, warms it up, then handles requests. */
final class HttpKernelRunner implements RunnerInterface
{
    /** Unused session ID: the warm-up acts as a returning visitor. */
    private const NOBODY = '00000000000000000000000000';

    private bool $isBootedAhead = false;
    /**
     * Still true in the request's shutdown functions if exit() ended the request without the
     * kernel's knowledge.
     */
    private bool $isInRequest = false;

    /** @param list<string> $warmup targets, such as "/" or "https://example.org/search?q=tea" */
    public function __construct(
        private Cycle $cycle,
        private HttpKernelInterface $kernel,
        private array $warmup,
    ) {
    }

    public function run(): int
    {
        if (Sapi::boots()) {
            $this->boot();
        }
        $this->cycle->run($this->answer(...), $this->reset(...));

        return 0;
    }

    private function boot(): void
    {
        if ($this->kernel instanceof KernelInterface) {
            $this->kernel->boot();
            $this->isBootedAhead = true;
        }
        if ($this->warmup !== []) {
            $this->cycle->warmUp($this->warmUp(...));
        }
    }

    private function warmUp(): void
    {
        $cookies = $_COOKIE;
        $kept = array_filter($this->connections(), static fn (object $c): bool => $c->isConnected());
        foreach ($this->warmup as $target) {
            $_COOKIE = [session_name() => self::NOBODY];
            $request = Request::create($target, 'GET', [], $_COOKIE, [], $_SERVER);
            $this->terminate($request, $this->handler()->handle($request));
            // Symfony 5.4 configures PHP's session, including its handler, only once: when the
            // session is first requested.
            $request->hasSession() && $request->getSession();
        }
        $this->reset();
        $this->disconnect($kept);
        $_COOKIE = $cookies;
        unset($_SESSION);
    }

    private function answer(): void
    {
        $this->isInRequest = true;
        // Registers abandon() during shutdown, so that it runs after all other shutdown functions
        // of the request.
        register_shutdown_function(fn () => register_shutdown_function($this->abandon(...)));
        try {
            $request = Request::createFromGlobals();
            $response = $this->handler()->handle($request);
            self::nameRoute($request);
            $response->send();
            Sapi::finish();
            $this->terminate($request, $response);
        } finally {
            $this->isInRequest = false;
        }
    }

    /** Reports the router's name for the request. An unknown page has no name. */
    private static function nameRoute(Request $request): void
    {
        $name = $request->attributes->get('_route');
        \is_string($name) && \Samovar\route($name);
    }

    /**
     * Runs after exit() and dd(), which bypass the kernel. Services may still hold data of that
     * request, so they are created again. Destructors of the old services may still print, as at
     * the end of a script.
     */
    private function abandon(): void
    {
        if ($this->isInRequest && $this->isBootedAhead && $this->cycle->model() === Model::Resident) {
            $this->kernel->shutdown();
            self::forgetExceptionHandler();
            self::forgetDumper(VarDumper::class, DebugBundle::class);
            gc_collect_cycles();
            $this->kernel->boot();
        }
        $this->isInRequest = false;
    }

    private function terminate(Request $request, Response $response): void
    {
        $handler = $this->handler();
        if ($handler instanceof TerminableInterface) {
            $handler->terminate($request, $response);
        }
    }

    /**
     * Returns the HTTP cache if there is one. A booted kernel does not use its HTTP cache on its
     * own.
     */
    private function handler(): HttpKernelInterface
    {
        $container = $this->isBootedAhead ? $this->kernel->getContainer() : null;

        return $container?->has('http_cache') ? $container->get('http_cache') : $this->kernel;
    }

    /**
     * Resets services that keep data of a request: `services_resetter` calls each of them,
     * including Doctrine's managers. A second boot() of the kernel does only this, and the kernel
     * then skips the reset in the next request.
     */
    private function reset(): void
    {
        if ($this->kernel instanceof KernelInterface) {
            $container = $this->kernel->getContainer();
            // In debug mode the next request must reset again: the kernel uses that moment as its
            // start time.
            $this->kernel->isDebug() && $container->has('services_resetter')
                ? $container->get('services_resetter')->reset()
                : $this->kernel->boot();
        }
        self::forgetDumper(VarDumper::class);
    }

    /**
     * The container's exception handler keeps the whole container in memory until a request sets
     * the next handler.
     */
    private static function forgetExceptionHandler(): void
    {
        $handler = set_exception_handler(null);
        restore_exception_handler();
        if (is_array($handler) && $handler[0] instanceof ErrorHandler) {
            $handler[0]->setExceptionHandler([$handler[0], 'renderException']);
        }
    }

    /**
     * dump() and dd() print their style sheet once per dumper, and the next page needs it again. A
     * handler that was not created in one of the given classes belongs to the application and
     * stays.
     */
    private static function forgetDumper(string ...$makers): void
    {
        $handler = class_exists(VarDumper::class, false) ? VarDumper::setHandler(null) : null;
        $maker = $handler instanceof \Closure
            ? (new \ReflectionFunction($handler))->getClosureScopeClass()?->name
            : null;
        if ($handler !== null && !in_array($maker, $makers, true)) {
            VarDumper::setHandler($handler);
        }
    }

    /** @return array<string, object> Doctrine's connections by name */
    private function connections(): array
    {
        $container = $this->kernel instanceof KernelInterface ? $this->kernel->getContainer() : null;

        return $container?->has('doctrine') ? $container->get('doctrine')->getConnections() : [];
    }

    /**
     * Closes the connections that the warm-up opened, because workers cannot share them. Connections
     * that were open before stay open.
     *
     * @param array<string, object> $kept
     */
    private function disconnect(array $kept): void
    {
        foreach ($this->connections() as $connection) {
            in_array($connection, $kept, true) || $connection->close();
        }
    }
}
