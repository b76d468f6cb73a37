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

/** Symfony's kernel: booted, warmed up, then request by request. */
final class HttpKernelRunner implements RunnerInterface
{
    /** A session id that nobody has: the warm-up's visitor is one who comes back. */
    private const NOBODY = '00000000000000000000000000';

    private bool $isBootedAhead = false;
    /** Still true when the request's shutdown functions run: it was left by exit(), and nothing has told the kernel. */
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
        foreach ($this->warmup as $target) {
            $_COOKIE = [session_name() => self::NOBODY];
            $request = Request::create($target, 'GET', [], $_COOKIE, [], $_SERVER);
            $this->terminate($request, $this->handler()->handle($request));
            // Symfony 5.4 sets PHP's session up, its handler above all, when it is first asked for one and never again.
            $request->hasSession() && $request->getSession();
        }
        $this->reset();
        $this->disconnect();
        $_COOKIE = $cookies;
        unset($_SESSION);
    }

    private function answer(): void
    {
        $this->isInRequest = true;
        // Of the functions for the end of the request the last: it is registered when the others are.
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

    /** The router's name of it; a page that it does not know has none. */
    private static function nameRoute(Request $request): void
    {
        $name = $request->attributes->get('_route');
        \is_string($name) && \Samovar\route($name);
    }

    /**
     * After exit() and dd(), which have told nobody: services may hold anything of that request, so they are made anew.
     * The old ones' destructors may still print, as at the end of a script.
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

    /** A kernel asks its HTTP cache, if it has one, only while it is not booted. */
    private function handler(): HttpKernelInterface
    {
        $container = $this->isBootedAhead ? $this->kernel->getContainer() : null;

        return $container?->has('http_cache') ? $container->get('http_cache') : $this->kernel;
    }

    /**
     * Services that keep something of a request let go of it: `services_resetter` calls each, Doctrine's managers among
     * them. A kernel that is booted again does just that, and knows then that the next request need not.
     */
    private function reset(): void
    {
        if ($this->kernel instanceof KernelInterface) {
            $container = $this->kernel->getContainer();
            // In debug mode the next request shall do it once more: the kernel takes the moment for its begin.
            $this->kernel->isDebug() && $container->has('services_resetter')
                ? $container->get('services_resetter')->reset()
                : $this->kernel->boot();
        }
        self::forgetDumper(VarDumper::class);
    }

    /** The container's own way to show an exception holds all of the container until a request sets the next one's. */
    private static function forgetExceptionHandler(): void
    {
        $handler = set_exception_handler(null);
        restore_exception_handler();
        if (is_array($handler) && $handler[0] instanceof ErrorHandler) {
            $handler[0]->setExceptionHandler([$handler[0], 'renderException']);
        }
    }

    /**
     * dump() and dd() print their style sheet once per dumper; the next page needs it again. A handler that was not
     * made in one of these classes is the application's, and stays.
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

    /** Connections that the warm-up has made could not be shared by the workers. */
    private function disconnect(): void
    {
        $container = $this->kernel instanceof KernelInterface ? $this->kernel->getContainer() : null;
        if ($container?->has('doctrine')) {
            foreach ($container->get('doctrine')->getConnections() as $connection) {
                $connection->close();
            }
        }
    }
}
