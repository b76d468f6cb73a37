<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr15;

use Psr\Http\Server\RequestHandlerInterface;

if (!\function_exists(__NAMESPACE__ . '\serve')) {
    /**
     * Samovar\serve() for a PSR-15 handler: what stands above ran once, $handler is called for each request.
     *
     * Under another SAPI it answers the one request of the script.
     *
     * @param int $rollbackEvery as with Samovar\serve(); 1 gives every request the application as it was booted
     *
     * @throws \Error when called from within a handler
     * @throws \ValueError when $rollbackEvery is negative
     */
    function serve(RequestHandlerInterface $handler, int $rollbackEvery = 0): void
    {
        (new Runner($handler, $rollbackEvery))->run();
    }
}
