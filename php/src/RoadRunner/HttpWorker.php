<?php

declare(strict_types=1);

namespace Samovar\Runtime\RoadRunner;

use Samovar\Runtime\Sapi;

/**
 * Spiral\RoadRunner\Http\HttpWorker: requests as plain values, responses as status, headers and
 * body.
 */
class HttpWorker implements HttpWorkerInterface
{
    /** Output buffer level at the start of the open request, or null once there is a response. */
    private static ?int $level = null;

    public function __construct(private WorkerInterface $worker)
    {
    }

    public function waitRequest(): ?HttpRequest
    {
        if (self::$level !== null) {
            error_log('the worker script did not respond to a request');
            $this->respond(500, '');
        }
        if (!Turns::ofThisProcess()->next()) {
            return null;
        }
        self::$level = ob_get_level();
        ob_start();
        register_shutdown_function(self::abandoned(...));

        return HttpRequest::received();
    }

    /** Handles a script that ends, for example with exit(), without a response. */
    private static function abandoned(): void
    {
        if (self::$level !== null) {
            self::dropOutput();
            headers_sent() || http_response_code(500);
        }
    }

    public function respond(
        int $status,
        string|\Generator $body,
        array $headers = [],
        bool $endOfStream = true,
    ): void {
        if (!Turns::ofThisProcess()->isOpen()) {
            throw new \LogicException('there is no request to respond to: call waitRequest() first');
        }
        self::dropOutput();
        if (!headers_sent()) {
            self::sendHead($status, $headers);
        }
        foreach (\is_string($body) ? [$body] : self::pieces($body) as $at => $piece) {
            $at > 0 && self::flush();
            echo $piece;
        }
        $endOfStream ? Sapi::finish() : self::flush();
    }

    public function getWorker(): WorkerInterface
    {
        return $this->worker;
    }

    /** @param array<string, string|list<string>> $headers */
    private static function sendHead(int $status, array $headers): void
    {
        http_response_code($status);
        foreach ($headers as $name => $values) {
            // Does not replace the cookie of PHP's session.
            $replaces = strcasecmp((string) $name, 'Set-Cookie') !== 0;
            foreach ((array) $values as $value) {
                header("$name: $value", $replaces, $status);
                $replaces = false;
            }
        }
    }

    /** @return \Generator<int, string> */
    private static function pieces(\Generator $body): \Generator
    {
        $at = 0;
        foreach ($body as $piece) {
            yield $at++ => (string) $piece;
        }
        yield $at => (string) $body->getReturn();
    }

    private static function flush(): void
    {
        ob_get_level() > 0 && ob_flush();
        flush();
    }

    /** Moves output that the loop printed since the start of the request to the log. */
    private static function dropOutput(): void
    {
        $printed = '';
        while (self::$level !== null && ob_get_level() > self::$level) {
            $printed = ob_get_clean() . $printed;
        }
        self::$level = null;
        $printed === '' || error_log("output of the worker script: $printed");
    }
}
