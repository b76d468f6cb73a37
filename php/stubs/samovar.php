<?php

/**
 * IDE stubs for the functions and classes that Samovar provides to PHP code. Add this file to your
 * IDE's include path. It is never loaded at run time.
 *
 * The guides in docs/guide show examples. check.php in this folder compares the stubs with a
 * running server.
 */

declare(strict_types=1);

namespace Samovar {
    /**
     * Makes the application resident: the code above this call runs once, and $handler is called
     * for each request.
     *
     * A handler without a parameter uses the superglobals and echoes its output. A handler with a
     * parameter receives a Request. The handler may return a string, a Response or nothing. A
     * returned string or Response is sent after the echoed output.
     *
     * Returns when the server stops. In a script that is not the front controller, it calls
     * $handler once, for the current request, and returns.
     *
     * An exception that leaves $handler ends the request with status 500. So does a return value of
     * another type. Both are reported in the same way as PHP's uncaught exceptions. serve() does
     * not throw them.
     *
     * @param callable(): (string|Response|null)|callable(Request): (string|Response|null) $handler
     * @param int $rollbackEvery 0 keeps the application's state between requests. N rolls the
     * process back to its state at the call of serve(): after N requests, after a fatal error, and
     * when its memory has grown too much. 1 means after each request.
     *
     * @throws \Error when called from within a handler
     * @throws \ValueError when $rollbackEvery is negative
     */
    function serve(callable $handler, int $rollbackEvery = 0): void
    {
    }

    /**
     * Sets the checkpoint: the code above this call runs once, and each request runs the code below
     * it. At the end of a request the process returns to this point.
     *
     * Below the call, superglobals, headers, input and output are those of the current request. The
     * front controller may call it at any call depth. It only calls $resume, and the whole script
     * runs for each request, in two cases: in a script that is not the front controller, and when
     * the application holds state that cannot be rolled back.
     *
     * $resume is called at the start of each request, and once where there is no checkpoint. Use it
     * to re-read data that may have changed since the code above the checkpoint ran. When it
     * returns false, the booted state is out of date. The request then runs the whole script from
     * its first line, and a newly booted worker replaces this one.
     *
     * @param (callable(): mixed)|null $resume
     */
    function checkpoint(?callable $resume = null): void
    {
    }

    /**
     * Declares that this request has finished its use of a connection, pipe or terminal that was
     * opened above the checkpoint. Call it when all replies have been read and the peer keeps no
     * state of the conversation.
     *
     * Without this call, the worker is replaced after a request that used such a stream, because
     * Samovar does not know its protocol. After further writes, call it again. PDO (MySQL,
     * PostgreSQL), mysqli, pg_connect() and Redis do not need it.
     *
     * Returns whether $stream was opened above the checkpoint.
     *
     * @param resource|\Socket $stream
     */
    function kept(mixed $stream): bool
    {
    }

    /**
     * Extends this request's time limit to $seconds from now. The server's timeouts
     * (timeouts.request, timeouts.response, timeouts.post_response) do not end the request earlier.
     * PHP's own max_execution_time is separate: see set_time_limit().
     *
     * Returns the number of seconds granted. A request never runs longer than timeouts.extended. 0
     * means that nothing was granted, or that there is no request.
     *
     * @throws \ValueError when $seconds is less than 1
     */
    function extend_deadline(int $seconds): int
    {
    }

    /**
     * Calls $work immediately during the application's boot, and discards its output, headers and
     * session. Use it above the checkpoint to render a page, so that every request starts with the
     * page's classes and services loaded.
     *
     * Does nothing during a request. An exception that leaves $work is logged.
     *
     * @param callable(): mixed $work
     */
    function warmup(callable $work): void
    {
    }

    /**
     * Sets the route name of this request. Statistics are grouped by it, instead of by the script
     * and a pattern of its path. The last call wins, and "" removes the name.
     *
     * Use a fixed set of names from the application, never a URL: the server tracks a limited
     * number of routes.
     */
    function route(string $name): void
    {
    }

    /**
     * Records an exception that the application has handled: on the request's page, on the page
     * Errors, in traces and in the metric samovar_errors_total. Exceptions that no code catches,
     * and those that a framework renders as a response with a status of 500 or above, are recorded
     * without this call.
     *
     * The server keeps the class, the message, the position, the stack without arguments, and three
     * previous exceptions. It records up to four exceptions per request.
     */
    function report_exception(\Throwable $exception): void
    {
    }

    /**
     * Traces this visitor's next request that runs PHP: which functions it calls, how often and for
     * how long. `samovar calls` and the dashboard page Calls show the result. Use it in
     * development, and on pages that only operators can see.
     *
     * It sets the cookie `samovar_trace` on this response. The server generates its value, which is
     * valid for one request within five minutes. If all tracing workers are busy, that request is
     * not traced, and the following one is.
     *
     * Returns whether the next request will be traced. It returns false when tracing is off (enable
     * it with the setting profile.trace or profile.trace_key), when headers were already sent, or
     * when there is no request.
     */
    function trace_next(): bool
    {
    }

    /**
     * Creates a timer for this request. It is not running yet. Measurements of timers with the same
     * tags are summed per route.
     *
     * @param non-empty-array<string, scalar|null> $tags such as ['group' => 'mysql', 'server' =>
     * 'db1']
     *
     * @throws \ValueError when there is no tag, or a tag has no name
     * @throws \TypeError when a tag's value is an array, an object or a resource
     */
    function timer(array $tags): Timer
    {
    }

    /**
     * Measures wall-clock and CPU time over any number of starts and stops. Create it with timer().
     * It cannot be cloned or serialized.
     *
     * A timer that is running at the end of its request is stopped at that moment. A timer that is
     * kept longer can be used in the next request.
     */
    final class Timer
    {
        private function __construct()
        {
        }

        /** Starts the timer. Does nothing when it is running. */
        public function start(): static
        {
        }

        /** Stops the timer and counts one hit. Does nothing when it is not running. */
        public function stop(): static
        {
        }

        /**
         * Adds time that was measured in another way.
         *
         * @throws \ValueError when $seconds or $hits is negative
         */
        public function add(float $seconds, int $hits = 1): static
        {
        }
    }

    /**
     * The request that a handler processes. The server creates it. It cannot be cloned or
     * serialized.
     *
     * After its request has ended, a Request returns empty strings, empty arrays and defaults.
     */
    final class Request
    {
        private function __construct()
        {
        }

        /** Returns the method as the client sent it, such as "GET". */
        public function method(): string
        {
        }

        /** Returns the request target as the client sent it: path and query, not decoded. */
        public function uri(): string
        {
        }

        /** Returns the path of the target, not decoded. */
        public function path(): string
        {
        }

        /** Returns the query string of the target without the "?", not decoded. */
        public function queryString(): string
        {
        }

        /** Returns the protocol: "HTTP/1.1" or "HTTP/1.0". */
        public function protocol(): string
        {
        }

        /** Returns the requested host without the port: $_SERVER['SERVER_NAME']. */
        public function host(): string
        {
        }

        /** Returns whether the client uses HTTPS, according to a trusted proxy if there is one. */
        public function isSecure(): bool
        {
        }

        /**
         * Returns the client's address. For a trusted proxy, it is the address that the proxy
         * forwards.
         */
        public function remoteAddress(): string
        {
        }

        /**
         * Returns the request ID. The logs, $_SERVER['REQUEST_ID'] and the response header
         * X-Request-Id contain the same ID.
         */
        public function id(): string
        {
        }

        /**
         * Returns a header's value, or $default when it is absent. $name is case-insensitive.
         * Values of a repeated header are joined with ", ".
         *
         * @return ($default is null ? string|null : string)
         */
        public function header(string $name, ?string $default = null): ?string
        {
        }

        /**
         * Returns all headers, with their names in lower case.
         *
         * @return array<string, string>
         */
        public function headers(): array
        {
        }

        /**
         * Returns the query variables: the original $_GET.
         *
         * @return array<array-key, string|array<array-key, mixed>>
         */
        public function query(): array
        {
        }

        /**
         * Returns the form fields of a POST: the original $_POST.
         *
         * @return array<array-key, string|array<array-key, mixed>>
         */
        public function form(): array
        {
        }

        /**
         * Returns the cookies: the original $_COOKIE.
         *
         * @return array<array-key, string|array<array-key, mixed>>
         */
        public function cookies(): array
        {
        }

        /**
         * Returns the uploads of a POST's multipart form: the original $_FILES, for
         * move_uploaded_file(). Files that were not moved are deleted when the request ends.
         *
         * @return array<array-key, array<string, mixed>>
         */
        public function files(): array
        {
        }

        /**
         * Returns the whole body. It can be called repeatedly. The body of a POST's multipart form
         * is empty here: use form() and files().
         */
        public function body(): string
        {
        }

        /**
         * Returns the body as a readable stream, for bodies too large for memory. The stream is
         * closed when the request ends.
         *
         * @return resource
         *
         * @throws \Error when the request is over
         */
        public function bodyStream()
        {
        }

        /**
         * Returns a value that setAttribute() stored. Middleware uses attributes to pass data on.
         */
        public function attribute(string $name, mixed $default = null): mixed
        {
        }

        /** Stores a value with this request. */
        public function setAttribute(string $name, mixed $value): void
        {
        }

        /**
         * Returns all attributes.
         *
         * @return array<array-key, mixed>
         */
        public function attributes(): array
        {
        }

        /**
         * Returns the entries of $_SERVER, except REQUEST_TIME, REQUEST_TIME_FLOAT and PHP_AUTH_*.
         *
         * @return array<string, string>
         */
        public function server(): array
        {
        }
    }

    /** A response that a handler returns. It cannot be changed, cloned or serialized. */
    final class Response
    {
        /**
         * @param string|iterable<string>|resource $body the elements of an array are joined; any
         * other iterable is sent piece by piece as it yields; a stream is copied
         * @param int $status 200 to 599
         * @param array<string, string|int|float|list<string|int|float>> $headers replace headers of
         * the same name that header() has set; a list sets several headers of one name
         *
         * @throws \TypeError when $body has another type
         * @throws \ValueError when $status is out of range
         */
        public function __construct($body = '', int $status = 200, array $headers = [])
        {
        }

        /** Returns the status. */
        public function status(): int
        {
        }

        /**
         * Returns the headers as passed to the constructor.
         *
         * @return array<string, string|int|float|list<string|int|float>>
         */
        public function headers(): array
        {
        }

        /**
         * Returns the body as passed to the constructor.
         *
         * @return string|iterable<string>|resource
         */
        public function body(): mixed
        {
        }
    }
}

namespace {
    /**
     * Completes the response to the client while the script continues. Later output is discarded.
     *
     * @return bool false when the response is already complete, and during the boot of a resident
     * application
     */
    function fastcgi_finish_request(): bool
    {
    }

    /**
     * Returns the request headers, with names written as in "Content-Type". Content-Length and
     * Content-Type are always present, and empty when the client did not send them.
     *
     * @return array<string, string>
     */
    function apache_request_headers(): array
    {
    }

    /**
     * Alias of apache_request_headers().
     *
     * @implementation-alias apache_request_headers
     *
     * @return array<string, string>
     */
    function getallheaders(): array
    {
    }
}
