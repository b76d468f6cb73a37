<?php

declare(strict_types=1);

namespace App\Worker;

use Illuminate\Http\Request;
use Laravel\Octane\Contracts\Client;
use Laravel\Octane\Contracts\Worker;
use Laravel\Octane\OctaneResponse;
use Laravel\Octane\RequestContext;

/**
 * A short form of Octane's worker: a sandbox for each request, and output that was printed outside
 * the response.
 */
final class OctaneStyleWorker implements Worker
{
    public function __construct(private Sandbox $sandbox, private Client $client)
    {
    }

    public function boot(): void
    {
    }

    public function handle(Request $request, RequestContext $context): void
    {
        ob_start();
        $this->sandbox->handle(
            $request,
            fn ($response) => $this->client->respond($context, new OctaneResponse($response, ob_get_clean())),
        );
    }

    public function handleTask($data): never
    {
        throw new \LogicException('this application has no tasks');
    }

    public function terminate(): void
    {
    }
}
