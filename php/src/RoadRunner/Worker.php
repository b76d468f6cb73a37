<?php

declare(strict_types=1);

namespace Samovar\Runtime\RoadRunner;

/** Spiral\RoadRunner\Worker, with the parts that an HTTP worker needs. */
class Worker implements WorkerInterface
{
    /**
     * @param bool $interceptSideEffects has no effect here: output of the loop always goes to the
     * log
     * @param mixed $logger has no effect here
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
