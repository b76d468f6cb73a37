<?php

declare(strict_types=1);

namespace Samovar\Runtime;

use Samovar\Response;

/**
 * The server below: which one it is, where the script stands, and how an answer is sent by hand.
 *
 * @internal
 */
final class Sapi
{
    private const PIECE_BYTES = 64 * 1024;

    /** Whether Samovar runs this script. */
    public static function isSamovar(): bool
    {
        return \extension_loaded('samovar');
    }

    /** Whether Samovar boots the application: above the checkpoint there is no request. */
    public static function boots(): bool
    {
        return self::isSamovar() && !isset($_SERVER['REQUEST_METHOD']);
    }

    /** Completes the client's answer where the SAPI can do that; the script goes on. */
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
     * Sends what a handler has returned.
     *
     * @param string $handler whose, for the message
     *
     * @throws \TypeError when it is no answer
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

    /** Sends $response by header() and echo, as Samovar sends what a handler returns. */
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
