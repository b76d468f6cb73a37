<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr15;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;
use Samovar\Response;

/** PSR-7 response → native response. A body that is large or of unknown size is sent in pieces. */
final class Answer
{
    private const PIECE_BYTES = 64 * 1024;
    /** Responses with these statuses have no body (RFC 9110). */
    private const WITHOUT_BODY = [204, 205, 304];

    /**
     * Converts $response to a native response. The reason phrase is not used: the server chooses
     * its own.
     *
     * Cookies are sent immediately with header(), so that they do not replace the cookie of PHP's
     * session.
     *
     * @param string $method method of the request; the body is not read for HEAD
     */
    public static function of(ResponseInterface $response, string $method = 'GET'): Response
    {
        $headers = $response->getHeaders();
        foreach ($headers as $name => $values) {
            if (strcasecmp((string) $name, 'Set-Cookie') === 0) {
                unset($headers[$name]);
                foreach ($values as $value) {
                    header("$name: $value", false);
                }
            }
        }
        $status = $response->getStatusCode();
        $hasBody = $method !== 'HEAD' && !\in_array($status, self::WITHOUT_BODY, true);

        return new Response($hasBody ? self::body($response->getBody()) : '', $status, $headers);
    }

    /** @return string|iterable<string> */
    private static function body(StreamInterface $body): string|iterable
    {
        $size = $body->getSize();

        return $size !== null && $size <= self::PIECE_BYTES ? (string) $body : self::pieces($body);
    }

    /** @return \Generator<int, string> */
    private static function pieces(StreamInterface $body): \Generator
    {
        if ($body->isSeekable()) {
            $body->rewind();
        }
        try {
            while (!$body->eof()) {
                $piece = $body->read(self::PIECE_BYTES);
                if ($piece !== '') {
                    yield $piece;
                }
            }
        } finally {
            $body->close();
        }
    }
}
