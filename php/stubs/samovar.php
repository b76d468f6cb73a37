<?php

/**
 * IDE stubs of what the Samovar worker offers to PHP code. Not loaded at run time.
 *
 * tests/tests/stubs.rs compares them with the running server by reflection.
 */

declare(strict_types=1);

namespace Samovar {
    /**
     * Makes the application resident: everything above this call ran once, the handler is called for each request.
     *
     * A handler without parameter works on the superglobals and echoes. One with a parameter is given a Request. It
     * may return a string or a Response, which is sent after what it echoed, or nothing.
     *
     * Returns when the server stops. In a script that is not the front controller the handler answers the one request.
     *
     * @param callable(): (string|Response|null)|callable(Request): (string|Response|null) $handler
     * @param int $rollbackEvery must be 0: requests are not rolled back yet
     *
     * @throws \Error when called within a handler
     * @throws \ValueError when $rollbackEvery is not 0
     */
    function serve(callable $handler, int $rollbackEvery = 0): void
    {
    }

    /**
     * One request. An object that is kept after its request answers with defaults: empty strings, empty arrays, null.
     */
    final class Request
    {
        private function __construct()
        {
        }

        /** "GET", "POST" … as the client sent it. */
        public function method(): string
        {
        }

        /** The target as it came: path and query, not decoded. */
        public function uri(): string
        {
        }

        /** The target's path, not decoded. */
        public function path(): string
        {
        }

        /** The target's query without "?". */
        public function queryString(): string
        {
        }

        /** "HTTP/1.1" or "HTTP/1.0". */
        public function protocol(): string
        {
        }

        /** The host the client asked for, without port. */
        public function host(): string
        {
        }

        /** Whether it came over TLS, as a trusted proxy says. */
        public function isSecure(): bool
        {
        }

        /** The client's address; behind a trusted proxy the one that it forwards. */
        public function remoteAddress(): string
        {
        }

        /** The request id, as in the logs. */
        public function id(): string
        {
        }

        /** A header's value, whatever the case of its name; repeated ones are joined by ", ". */
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
         * The parsed query, as $_GET.
         *
         * @return array<array-key, mixed>
         */
        public function query(): array
        {
        }

        /**
         * The parsed form of a POST, as $_POST.
         *
         * @return array<array-key, mixed>
         */
        public function form(): array
        {
        }

        /** @return array<array-key, mixed> as $_COOKIE */
        public function cookies(): array
        {
        }

        /**
         * Uploads, as $_FILES: for move_uploaded_file(). They are deleted when the request ends.
         *
         * @return array<array-key, mixed>
         */
        public function files(): array
        {
        }

        /** The whole body; empty for multipart forms, whose parts are in form() and files(). */
        public function body(): string
        {
        }

        /**
         * The body as a readable stream.
         *
         * @return resource
         *
         * @throws \Error when the request is over
         */
        public function bodyStream()
        {
        }

        /** What setAttribute() has put there, for middleware. */
        public function attribute(string $name, mixed $default = null): mixed
        {
        }

        public function setAttribute(string $name, mixed $value): void
        {
        }

        /** @return array<array-key, mixed> */
        public function attributes(): array
        {
        }

        /** @return array<string, string> as $_SERVER, without times and authentication */
        public function server(): array
        {
        }
    }

    /**
     * What a handler may return.
     */
    final class Response
    {
        /**
         * @param string|iterable<string>|resource $body an iterable's pieces are sent as they are made
         * @param int $status 200 to 599
         * @param array<string, string|list<string>> $headers
         *
         * @throws \TypeError for another body
         * @throws \ValueError for another status
         */
        public function __construct($body = '', int $status = 200, array $headers = [])
        {
        }

        public function status(): int
        {
        }

        /** @return array<string, string|list<string>> */
        public function headers(): array
        {
        }

        /** @return string|iterable<string>|resource */
        public function body(): mixed
        {
        }
    }
}

namespace {
    /**
     * Ends the client's answer while the script goes on. Later output ends the script, unless it ignores user aborts.
     *
     * @return bool false when the answer has ended already
     */
    function fastcgi_finish_request(): bool
    {
    }

    /** @return array<string, string> the request's headers, "Content-Type" style */
    function apache_request_headers(): array
    {
    }

    /** @return array<string, string> the request's headers, "Content-Type" style */
    function getallheaders(): array
    {
    }
}
