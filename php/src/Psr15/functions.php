<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr15;

use Psr\Http\Server\RequestHandlerInterface;

if (!\function_exists(__NAMESPACE__ . '\serve')) {
    /**
     * Samovar\serve() for a PSR-15 handler: the code above the call runs once, and $handler is
     * called for each request.
     *
     * Under another SAPI it handles the one request of the script.
     *
     * @param int $rollbackEvery as for Samovar\serve(); 1 restores the booted application for each
     * request
     *
     * @throws \Error when called from within a handler
     * @throws \ValueError when $rollbackEvery is negative
     */
    function serve(RequestHandlerInterface $handler, int $rollbackEvery = 0): void
    {
        (new Runner($handler, $rollbackEvery))->run();
    }
}
