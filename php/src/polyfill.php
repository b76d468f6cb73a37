<?php

declare(strict_types=1);

/*
 * What Samovar offers to PHP code, for every other SAPI: the same front controller runs under php-fpm, `php -S`
 * and the command line. Signatures are those of php/stubs/samovar.php; the classes are in polyfill/.
 */

namespace Samovar;

use Samovar\Runtime\Polyfill;

if (!\function_exists(__NAMESPACE__ . '\serve')) {
    /**
     * Answers the current request with $handler and returns: a worker script is an ordinary front controller here.
     *
     * An exception that leaves $handler is thrown on, so that PHP reports it and answers 500.
     *
     * @param callable(): (string|Response|null)|callable(Request): (string|Response|null) $handler
     * @param int $rollbackEvery means nothing here: no state outlives the request
     *
     * @throws \Error when called from within a handler, and on the command line, where there is no request
     * @throws \TypeError when $handler returns something else
     * @throws \ValueError when $rollbackEvery is negative
     */
    function serve(callable $handler, int $rollbackEvery = 0): void
    {
        Polyfill::serve($handler, $rollbackEvery);
    }
}

if (!\function_exists(__NAMESPACE__ . '\checkpoint')) {
    /** Does nothing: the whole script runs for each request. */
    function checkpoint(): void
    {
    }
}

if (!\function_exists(__NAMESPACE__ . '\warmup')) {
    /**
     * Does nothing, and $work is not called: nobody would profit from it.
     *
     * @param callable(): mixed $work
     */
    function warmup(callable $work): void
    {
    }
}
