<?php

/**
 * IDE stubs: what Samovar offers to PHP code. Add this file to your IDE's include path; it is never loaded at run time.
 *
 * docs/guide explains it with examples. check.php, beside this file, compares it with a running server.
 */

declare(strict_types=1);

namespace Samovar {
    /**
     * Makes the application resident: what stands above this call ran once, $handler is called for each request.
     *
     * A handler without a parameter works with the superglobals and echoes. One with a parameter is given a Request.
     * It may return a string or a Response, which is sent after what it echoed, or nothing.
     *
     * Returns when the server stops. In a script that is not the front controller it calls $handler for the one
     * request of that script and returns.
     *
     * An exception that leaves $handler, and a return value of another type, end the request with 500; they are
     * reported as PHP reports uncaught exceptions, and are not thrown here.
     *
     * @param callable(): (string|Response|null)|callable(Request): (string|Response|null) $handler
     * @param int $rollbackEvery 0: the application's state lives on. N: after N requests, after a fatal error, and when
     *     its memory has grown too much, the process returns to where it stood when serve() was called; 1 means after
     *     each request.
     *
     * @throws \Error when called from within a handler
     * @throws \ValueError when $rollbackEvery is negative
     */
    function serve(callable $handler, int $rollbackEvery = 0): void
    {
    }

    /**
     * What stands above this call runs once; each request goes on below it, and the process returns here at its end.
     *
     * Superglobals, headers, input and output below are those of the request. It may stand at any depth of the front
     * controller. In any other script, and when the application holds something that cannot be rolled back, it does
     * nothing but call $resume: the whole script runs for each request.
     *
     * $resume is called first in each request, and once where there is no checkpoint: it reads again what stands above
     * and may have changed since. When it returns false, what was booted no longer fits: the request runs as a whole
     * script from its first line, and a worker that boots anew takes this one's place.
     *
     * @param (callable(): mixed)|null $resume
     */
    function checkpoint(?callable $resume = null): void
    {
    }

    /**
     * Says that what this request has said so far on a connection, pipe or terminal opened above the checkpoint is
     * finished: every answer was read, and the other end keeps nothing of it. Without that the worker is replaced after
     * a request that used one, because nobody knows its protocol. Saying more afterwards needs another call.
     *
     * Returns whether $stream is one that was opened above. Not needed for PDO (MySQL, PostgreSQL), mysqli, pg_connect()
     * and Redis.
     *
     * @param resource|\Socket $stream
     */
    function kept(mixed $stream): bool
    {
    }

    /**
     * Asks for $seconds more for this request, from now on: the server's deadlines (timeouts.request, timeouts.answer,
     * timeouts.after) do not end it before. PHP's own max_execution_time is another matter: set_time_limit().
     *
     * Returns how many of these seconds it gets: no request runs for longer than timeouts.extended, whatever it asks
     * for. 0: none, or there is no request.
     *
     * @throws \ValueError when $seconds is less than 1
     */
    function extend_deadline(int $seconds): int
    {
    }

    /**
     * Calls $work at once while the application boots, and drops its output, headers and session: for rendering a page
     * above the checkpoint, so that the classes and services of it are there for every request.
     *
     * Does nothing in a request. An exception that leaves $work is logged.
     *
     * @param callable(): mixed $work
     */
    function warmup(callable $work): void
    {
    }

    /**
     * Names the route of this request: what its figures are added up by, in place of the script and a pattern of its path.
     * The last name counts, and "" takes it back.
     *
     * Names come from the application, never from a URL: a server keeps a limited number of them apart.
     */
    function route(string $name): void
    {
    }

    /**
     * Has this visitor's next request that runs PHP traced: what it calls, how often, for how long, as `samovar calls` and the
     * dashboard's page Calls show it. For development, and for pages that only operators see.
     *
     * By a cookie of this answer, `samovar_trace`, which the server makes: it holds for one request, within five minutes. A request
     * that finds the workers for it busy is not traced, and the next one is.
     *
     * Returns whether it will be. False: no workers trace (the setting profile.trace or profile.trace_key has them), headers
     * were sent, or there is no request.
     */
    function trace_next(): bool
    {
    }

    /**
     * A timer of this request, not yet started. What timers with the same tags have measured is added up by route.
     *
     * @param non-empty-array<string, scalar|null> $tags such as ['group' => 'mysql', 'server' => 'db1']
     *
     * @throws \ValueError when there is no tag, or one without a name
     * @throws \TypeError when a tag's value is an array, an object or a resource
     */
    function timer(array $tags): Timer
    {
    }

    /**
     * Measures wall and CPU time, as often as it is started and stopped. Made by timer(); it cannot be cloned or
     * serialized.
     *
     * One that runs at the end of its request is stopped then. Kept longer, it can be used for the next.
     */
    final class Timer
    {
        private function __construct()
        {
        }

        /** Starts it; one that runs goes on. */
        public function start(): static
        {
        }

        /** Stops it: that is one hit. One that does not run stays as it is. */
        public function stop(): static
        {
        }

        /**
         * Adds what was measured elsewhere.
         *
         * @throws \ValueError when $seconds or $hits is negative
         */
        public function add(float $seconds, int $hits = 1): static
        {
        }
    }

    /**
     * The request that a handler answers. Made by the server; it cannot be cloned or serialized.
     *
     * A Request that is kept longer than its request answers with empty strings, empty arrays and defaults.
     */
    final class Request
    {
        private function __construct()
        {
        }

        /** The method as the client sent it, such as "GET". */
        public function method(): string
        {
        }

        /** The target as the client sent it: path and query, not decoded. */
        public function uri(): string
        {
        }

        /** The target's path, not decoded. */
        public function path(): string
        {
        }

        /** The target's query without the "?", not decoded. */
        public function queryString(): string
        {
        }

        /** "HTTP/1.1" or "HTTP/1.0". */
        public function protocol(): string
        {
        }

        /** The host the client asked for, without port: $_SERVER['SERVER_NAME']. */
        public function host(): string
        {
        }

        /** Whether the client uses HTTPS, as a trusted proxy says. */
        public function isSecure(): bool
        {
        }

        /** The client's address; behind a trusted proxy the one that the proxy forwards. */
        public function remoteAddress(): string
        {
        }

        /** The request's id: the one in the logs, in $_SERVER['REQUEST_ID'] and in the answer's X-Request-Id. */
        public function id(): string
        {
        }

        /**
         * A header's value, whatever the case of $name; values of a repeated header are joined by ", ".
         *
         * @return ($default is null ? string|null : string)
         */
        public function header(string $name, ?string $default = null): ?string
        {
        }

        /**
         * All headers, names in lower case.
         *
         * @return array<string, string>
         */
        public function headers(): array
        {
        }

        /**
         * The query's variables: $_GET as it came.
         *
         * @return array<array-key, string|array<array-key, mixed>>
         */
        public function query(): array
        {
        }

        /**
         * The variables of a POST's form: $_POST as it came.
         *
         * @return array<array-key, string|array<array-key, mixed>>
         */
        public function form(): array
        {
        }

        /**
         * The cookies: $_COOKIE as it came.
         *
         * @return array<array-key, string|array<array-key, mixed>>
         */
        public function cookies(): array
        {
        }

        /**
         * The uploads of a POST's multipart form: $_FILES as it came, for move_uploaded_file(). What was not moved is
         * deleted when the request ends.
         *
         * @return array<array-key, array<string, mixed>>
         */
        public function files(): array
        {
        }

        /** The whole body, as often as asked. Empty for a POST's multipart form: see form() and files(). */
        public function body(): string
        {
        }

        /**
         * The body as a readable stream, for bodies that memory should not hold. It is closed when the request ends.
         *
         * @return resource
         *
         * @throws \Error when the request is over
         */
        public function bodyStream()
        {
        }

        /** A value that setAttribute() has put there: how middleware hands things on. */
        public function attribute(string $name, mixed $default = null): mixed
        {
        }

        /** Keeps a value with this request. */
        public function setAttribute(string $name, mixed $value): void
        {
        }

        /**
         * All attributes.
         *
         * @return array<array-key, mixed>
         */
        public function attributes(): array
        {
        }

        /**
         * What $_SERVER holds, but for REQUEST_TIME, REQUEST_TIME_FLOAT and PHP_AUTH_*.
         *
         * @return array<string, string>
         */
        public function server(): array
        {
        }
    }

    /**
     * An answer, for a handler to return. It cannot be changed, cloned or serialized.
     */
    final class Response
    {
        /**
         * @param string|iterable<string>|resource $body an array's elements are joined; the pieces of any other
         *     iterable are sent one by one as they are made; a stream is copied
         * @param int $status 200 to 599
         * @param array<string, string|int|float|list<string|int|float>> $headers replace those of header() with the
         *     same name; a list makes several headers
         *
         * @throws \TypeError when $body is none of these
         * @throws \ValueError when $status is out of range
         */
        public function __construct($body = '', int $status = 200, array $headers = [])
        {
        }

        /** The status. */
        public function status(): int
        {
        }

        /**
         * The headers as they were given.
         *
         * @return array<string, string|int|float|list<string|int|float>>
         */
        public function headers(): array
        {
        }

        /**
         * The body as it was given.
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
     * Completes the client's answer; the script goes on. What it prints from then on is dropped.
     *
     * @return bool false when the answer is complete already, and at a resident application's boot
     */
    function fastcgi_finish_request(): bool
    {
    }

    /**
     * The request's headers, names written as in "Content-Type". Content-Length and Content-Type are there in any
     * case, empty when the client sent none.
     *
     * @return array<string, string>
     */
    function apache_request_headers(): array
    {
    }

    /**
     * The same as apache_request_headers().
     *
     * @implementation-alias apache_request_headers
     *
     * @return array<string, string>
     */
    function getallheaders(): array
    {
    }
}
