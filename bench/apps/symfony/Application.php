<?php

declare(strict_types=1);

namespace Samovar\Bench\Symfony;

use App\Kernel;
use Closure;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;

require __DIR__ . '/environment.php';
require dirname(__DIR__, 3) . '/examples/symfony/autoload.php';

/** The example's resident kernel, for servers that pass requests as objects of their own. */
final class Application
{
    private function __construct(private readonly Kernel $kernel)
    {
    }

    public static function boot(): self
    {
        $kernel = new Kernel('prod', false);
        $kernel->boot();
        $kernel->getContainer()->get('app.session_factory')->createSession();

        return new self($kernel);
    }

    /**
     * @param Closure(Response): void $send runs between the response and the end of the request
     */
    public function handle(Request $request, Closure $send): void
    {
        $response = $this->kernel->handle($request);
        $send($response);
        $this->kernel->terminate($request, $response);
        $this->kernel->getContainer()->get('services_resetter')->reset();
    }
}
