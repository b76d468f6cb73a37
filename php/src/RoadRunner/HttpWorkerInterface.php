<?php

declare(strict_types=1);

namespace Samovar\Runtime\RoadRunner;

/** Spiral\RoadRunner\Http\HttpWorkerInterface. */
interface HttpWorkerInterface
{
    /** Waits for a request; null when the server stops. */
    public function waitRequest(): ?HttpRequest;

    /**
     * Answers the open request.
     *
     * @param string|\Generator<mixed, string, mixed, string|null> $body a generator's pieces are sent as they are made
     * @param array<string, string|list<string>> $headers
     * @param bool $endOfStream false: more of the body follows, by another call
     */
    public function respond(
        int $status,
        string|\Generator $body,
        array $headers = [],
        bool $endOfStream = true,
    ): void;

    public function getWorker(): WorkerInterface;
}
