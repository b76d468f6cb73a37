<?php

/**
 * IDE stubs: what Samovar has of FrankenPHP's functions, so that worker scripts written for it run unchanged.
 *
 * docs/guide/frankenphp.md says what differs. check.php, beside this file, compares it with a running server.
 */

declare(strict_types=1);

namespace {
    const FRANKENPHP_LOG_LEVEL_DEBUG = -4;
    const FRANKENPHP_LOG_LEVEL_INFO = 0;
    const FRANKENPHP_LOG_LEVEL_WARN = 4;
    const FRANKENPHP_LOG_LEVEL_ERROR = 8;

    /**
     * Waits for the next request, calls $callback with its superglobals, and ends it: output is flushed, the session
     * written, the answer complete. What stands above the first call runs once, when the server starts.
     *
     * What $callback returns is ignored. An exception that leaves it ends the request with 500 and is reported; exit()
     * ends the request too. Neither ends the worker script. When the script ends, a fresh worker takes its place.
     *
     * @param callable(): mixed $callback
     *
     * @return bool false when the server stops: leave the loop
     *
     * @throws \RuntimeException in a script that is not the front controller, below a checkpoint, and in $callback
     */
    function frankenphp_handle_request(callable $callback): bool
    {
    }

    /**
     * Sends the answer's head now, with that status.
     *
     * 103, and 102 to 199 in general: the headers set so far go ahead of the answer, and stay set for it. Who gets them says
     * the setting `early_hints`.
     *
     * @return int 0 when the head is sent, or was before; of an interim answer 1, or 3 when it is too late for one
     */
    function headers_send(int $status = 200): int
    {
    }

    /**
     * The same as fastcgi_finish_request(): completes the client's answer; the callback goes on.
     *
     * @implementation-alias fastcgi_finish_request
     *
     * @return bool false when the answer is complete already, and when there is no request
     */
    function frankenphp_finish_request(): bool
    {
    }

    /**
     * The same as apache_request_headers().
     *
     * @implementation-alias apache_request_headers
     *
     * @return array<string, string>
     */
    function frankenphp_request_headers(): array
    {
    }

    /**
     * The answer's headers so far; of several with one name the last.
     *
     * @return array<array-key, string>
     */
    function frankenphp_response_headers(): array|bool
    {
    }

    /**
     * The same as frankenphp_response_headers().
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
     * @param int $level what is below FRANKENPHP_LOG_LEVEL_INFO is written with `--log-level debug` only
     * @param array<array-key, mixed> $context
     */
    function frankenphp_log(string $message, int $level = 0, array $context = []): void
    {
    }
}
