<?php

declare(strict_types=1);

namespace Samovar\Runtime\RoadRunner;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;

/** Spiral\RoadRunner\Http\PSR7WorkerInterface. */
interface PSR7WorkerInterface
{
    /** Waits for a request. Returns null when the server stops. */
    public function waitRequest(): ?ServerRequestInterface;

    /** Sends the response to the open request. */
    public function respond(ResponseInterface $response): void;

    public function getWorker(): WorkerInterface;
}
