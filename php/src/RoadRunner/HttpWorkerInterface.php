<?php

declare(strict_types=1);

namespace Samovar\Runtime\RoadRunner;

/** Spiral\RoadRunner\Http\HttpWorkerInterface. */
interface HttpWorkerInterface
{
    /** Waits for a request. Returns null when the server stops. */
    public function waitRequest(): ?HttpRequest;

    /**
     * Sends the response to the open request.
     *
     * @param string|\Generator<mixed, string, mixed, string|null> $body pieces of a generator are
     * sent as it yields them
     * @param array<string, string|list<string>> $headers
     * @param bool $endOfStream false: another call sends more of the body
     */
    public function respond(
        int $status,
        string|\Generator $body,
        array $headers = [],
        bool $endOfStream = true,
    ): void;

    public function getWorker(): WorkerInterface;
}
