<?php

declare(strict_types=1);

namespace Samovar\Runtime\RoadRunner;

/** Spiral\RoadRunner\Worker, as far as a worker for HTTP needs it. */
class Worker implements WorkerInterface
{
    /**
     * @param bool $interceptSideEffects means nothing here: what the loop prints by itself always goes to the log
     * @param mixed $logger likewise
     */
    public static function create(bool $interceptSideEffects = true, mixed $logger = null): static
    {
        return new static();
    }

    final public function __construct()
    {
    }

    public function error(string $error): void
    {
        error_log($error);
        if (Turns::ofThisProcess()->isOpen()) {
            (new HttpWorker($this))->respond(500, '');
        }
    }

    public function stop(): void
    {
        Turns::ofThisProcess()->stop();
    }
}
