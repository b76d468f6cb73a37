<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr15;

use Psr\Http\Server\RequestHandlerInterface;
use Samovar\Request;
use Samovar\Response;
use Samovar\Runtime\Psr7\ServerRequest;
use Samovar\Runtime\Sapi;

/** Native requests → PSR-7 handler → native responses. */
final class Runner
{
    /** @param int $rollbackEvery as for Samovar\serve() */
    public function __construct(private RequestHandlerInterface $handler, private int $rollbackEvery = 0)
    {
    }

    /** Returns when the server stops. Under another SAPI it returns after the one request. */
    public function run(): int
    {
        \Samovar\serve($this->answer(...), $this->rollbackEvery);

        return 0;
    }

    /** Handles one request. */
    public function answer(Request $request): Response
    {
        return Answer::of($this->handler->handle(ServerRequest::received($request)), $request->method());
    }
}
