<?php

declare(strict_types=1);

namespace Samovar\Runtime\RoadRunner;

/** Spiral\RoadRunner\WorkerInterface, as far as a worker for HTTP needs it. */
interface WorkerInterface
{
    /** Answers the open request with 500 and writes $error to the server's log. */
    public function error(string $error): void;

    /** There will be no further request: the loop ends, and a fresh worker takes over. */
    public function stop(): void;
}
