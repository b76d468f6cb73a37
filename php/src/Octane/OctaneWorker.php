<?php

declare(strict_types=1);

namespace Samovar\Runtime\Octane;

use Laravel\Octane\ApplicationFactory;
use Laravel\Octane\Contracts\Worker as WorkerContract;
use Laravel\Octane\RequestContext;
use Laravel\Octane\Worker;

/**
 * The implementation of public/samovar-worker.php: boots Octane's worker once, then passes each
 * request to it.
 */
final class OctaneWorker
{
    private function __construct(
        private WorkerContract $worker,
        private SamovarClient $client,
    ) {
    }

    /** Boots the application below $basePath. */
    public static function boot(string $basePath): self
    {
        $client = new SamovarClient();

        return self::of(new Worker(new ApplicationFactory($basePath), $client), $client);
    }

    /** Boots $worker, which communicates through $client. */
    public static function of(WorkerContract $worker, SamovarClient $client): self
    {
        $worker->boot();

        return new self($worker, $client);
    }

    /** The handler for Samovar\serve(). */
    public function answer(): void
    {
        [$request, $context] = $this->client->marshalRequest(new RequestContext());
        $this->worker->handle($request, $context);
    }

    /**
     * Returns the number of requests after which the application is rolled back to its state after
     * the boot: octane:start --max-requests.
     */
    public static function requestsMax(): int
    {
        return max(0, (int) ($_SERVER['MAX_REQUESTS'] ?? $_ENV['MAX_REQUESTS'] ?? 0));
    }
}
