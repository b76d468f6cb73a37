<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr7;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;

/** A PSR-7 answer. */
final class Response extends Message implements ResponseInterface
{
    private const STATUS_MIN = 100;
    private const STATUS_MAX = 599;
    /** RFC 9110 and the registry of IANA. */
    private const PHRASES = [
        100 => 'Continue', 'Switching Protocols', 'Processing', 'Early Hints',
        200 => 'OK', 'Created', 'Accepted', 'Non-Authoritative Information', 'No Content', 'Reset Content',
        'Partial Content', 'Multi-Status', 'Already Reported',
        226 => 'IM Used',
        300 => 'Multiple Choices', 'Moved Permanently', 'Found', 'See Other', 'Not Modified', 'Use Proxy',
        307 => 'Temporary Redirect', 'Permanent Redirect',
        400 => 'Bad Request', 'Unauthorized', 'Payment Required', 'Forbidden', 'Not Found', 'Method Not Allowed',
        'Not Acceptable', 'Proxy Authentication Required', 'Request Timeout', 'Conflict', 'Gone', 'Length Required',
        'Precondition Failed', 'Content Too Large', 'URI Too Long', 'Unsupported Media Type',
        'Range Not Satisfiable', 'Expectation Failed', "I'm a teapot",
        421 => 'Misdirected Request', 'Unprocessable Content', 'Locked', 'Failed Dependency', 'Too Early',
        'Upgrade Required',
        428 => 'Precondition Required', 'Too Many Requests',
        431 => 'Request Header Fields Too Large',
        451 => 'Unavailable For Legal Reasons',
        500 => 'Internal Server Error', 'Not Implemented', 'Bad Gateway', 'Service Unavailable', 'Gateway Timeout',
        'HTTP Version Not Supported', 'Variant Also Negotiates', 'Insufficient Storage', 'Loop Detected',
        510 => 'Not Extended', 'Network Authentication Required',
    ];

    private int $status;
    private HeaderMap $first;
    private StreamInterface $made;

    /**
     * @param array<string, string|list<string>> $headers
     *
     * @throws \InvalidArgumentException when the status or a header is not allowed
     */
    public function __construct(
        int $status = 200,
        array $headers = [],
        string|StreamInterface $body = '',
        private string $phrase = '',
    ) {
        $this->status = self::status($status);
        $this->first = HeaderMap::of($headers);
        $this->made = \is_string($body) ? Stream::of($body) : $body;
    }

    public function getStatusCode(): int
    {
        return $this->status;
    }

    /**
     * @param int $code
     * @param string $reasonPhrase
     *
     * @throws \InvalidArgumentException
     */
    public function withStatus($code, $reasonPhrase = ''): static
    {
        $response = clone $this;
        $response->status = self::status($code);
        $response->phrase = (string) $reasonPhrase;

        return $response;
    }

    public function getReasonPhrase(): string
    {
        return $this->phrase !== '' ? $this->phrase : self::PHRASES[$this->status] ?? '';
    }

    protected function initialVersion(): string
    {
        return '1.1';
    }

    protected function initialHeaders(): HeaderMap
    {
        return $this->first;
    }

    protected function initialBody(): StreamInterface
    {
        return $this->made;
    }

    /** @throws \InvalidArgumentException */
    private static function status(mixed $code): int
    {
        if (\is_string($code) && ctype_digit($code)) {
            $code = (int) $code;
        }
        if (!\is_int($code) || $code < self::STATUS_MIN || $code > self::STATUS_MAX) {
            throw new \InvalidArgumentException('The status must be a number from 100 to 599');
        }

        return $code;
    }
}
