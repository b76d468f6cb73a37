<?php

declare(strict_types=1);

namespace Samovar\Runtime\RoadRunner;

/** Spiral\RoadRunner\WorkerInterface, with the parts that an HTTP worker needs. */
interface WorkerInterface
{
    /** Responds to the open request with 500 and writes $error to the server's log. */
    public function error(string $error): void;

    /** Accepts no further request: the loop ends, and a new worker replaces this one. */
    public function stop(): void;
}
