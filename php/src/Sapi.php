<?php

declare(strict_types=1);

namespace Samovar\Runtime;

use Samovar\Response;

/**
 * The current SAPI: its kind, whether it is booting the application, and functions to send a
 * response.
 *
 * @internal
 */
final class Sapi
{
    private const PIECE_BYTES = 64 * 1024;

    /** Returns whether Samovar runs this script. */
    public static function isSamovar(): bool
    {
        return \extension_loaded('samovar');
    }

    /**
     * Returns whether Samovar is booting the application. Above the checkpoint there is no request.
     */
    public static function boots(): bool
    {
        return self::isSamovar() && !isset($_SERVER['REQUEST_METHOD']);
    }

    /** Completes the response to the client if the SAPI supports it. The script continues. */
    public static function finish(): void
    {
        if (\function_exists('fastcgi_finish_request')) {
            fastcgi_finish_request();
        } elseif (\function_exists('litespeed_finish_request')) {
            litespeed_finish_request();
        } else {
            flush();
        }
    }

    /**
     * Sends the return value of a handler.
     *
     * @param string $handler name of the handler for the error message
     *
     * @throws \TypeError when the value cannot be sent
     */
    public static function deliver(mixed $answer, string $handler): void
    {
        match (true) {
            $answer === null => null,
            \is_string($answer) => print $answer,
            $answer instanceof Response => self::send($answer),
            default => throw new \TypeError(
                "$handler must return string, Samovar\\Response or null, " . get_debug_type($answer) . ' returned',
            ),
        };
    }

    /**
     * Sends $response with header() and echo, in the same way as Samovar sends a returned Response.
     */
    public static function send(Response $response): void
    {
        http_response_code($response->status());
        foreach ($response->headers() as $name => $values) {
            $replace = true;
            foreach ((array) $values as $value) {
                header("$name: $value", $replace);
                $replace = false;
            }
        }
        $body = $response->body();
        if (\is_string($body) || \is_array($body)) {
            echo \is_string($body) ? $body : implode('', $body);

            return;
        }
        foreach (is_iterable($body) ? $body : self::read($body) as $piece) {
            echo $piece;
            flush();
        }
    }

    /**
     * @param resource $stream
     *
     * @return \Generator<int, string>
     */
    private static function read($stream): \Generator
    {
        while (!feof($stream) && ($piece = fread($stream, self::PIECE_BYTES)) !== false) {
            yield $piece;
        }
    }
}
