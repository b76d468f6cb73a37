<?php

/**
 * IDE stubs for the FrankenPHP functions that Samovar provides, so that worker scripts written for
 * FrankenPHP run unchanged.
 *
 * docs/start/from-frankenphp.md lists the differences. check.php in this folder compares the stubs
 * with a running server.
 */

declare(strict_types=1);

namespace {
    const FRANKENPHP_LOG_LEVEL_DEBUG = -4;
    const FRANKENPHP_LOG_LEVEL_INFO = 0;
    const FRANKENPHP_LOG_LEVEL_WARN = 4;
    const FRANKENPHP_LOG_LEVEL_ERROR = 8;

    /**
     * Waits for the next request, calls $callback with its superglobals, and ends the request:
     * output is flushed, the session is written, and the response is complete. The code above the
     * first call runs once, when the server starts.
     *
     * The return value of $callback is ignored. An exception that leaves $callback is reported and
     * ends the request with status 500. exit() also ends the request. Neither ends the worker
     * script. When the script itself ends, a new worker replaces it.
     *
     * @param callable(): mixed $callback
     *
     * @return bool false when the server stops: leave the loop
     *
     * @throws \RuntimeException in a script that is not the front controller, below a checkpoint,
     * and within $callback
     */
    function frankenphp_handle_request(callable $callback): bool
    {
    }

    /**
     * Sends the response head immediately, with the given status.
     *
     * A status from 102 to 199, such as 103, sends the current headers as an interim response. They
     * also stay set for the final response. The setting `early_hints` specifies which clients
     * receive interim responses.
     *
     * @return int 0 when the head is sent, or was sent before; for an interim response 1, or 3 when
     * it is too late for one
     */
    function headers_send(int $status = 200): int
    {
    }

    /**
     * Alias of fastcgi_finish_request(): completes the response to the client while the callback
     * continues.
     *
     * @implementation-alias fastcgi_finish_request
     *
     * @return bool false when the response is already complete, and when there is no request
     */
    function frankenphp_finish_request(): bool
    {
    }

    /**
     * Alias of apache_request_headers().
     *
     * @implementation-alias apache_request_headers
     *
     * @return array<string, string>
     */
    function frankenphp_request_headers(): array
    {
    }

    /**
     * Returns the response headers set so far. For several headers of one name, it returns the
     * last.
     *
     * @return array<array-key, string>
     */
    function frankenphp_response_headers(): array|bool
    {
    }

    /**
     * Alias of frankenphp_response_headers().
     *
     * @implementation-alias frankenphp_response_headers
     *
     * @return array<array-key, string>
     */
    function apache_response_headers(): array|bool
    {
    }

    /**
     * Writes one line to the server's log, with $context as JSON.
     *
     * @param int $level levels below FRANKENPHP_LOG_LEVEL_INFO are written only with `--log-level
     * debug`
     * @param array<array-key, mixed> $context
     */
    function frankenphp_log(string $message, int $level = 0, array $context = []): void
    {
    }
}
