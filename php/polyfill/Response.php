<?php

declare(strict_types=1);

namespace Samovar;

/**
 * A response that a handler returns, under a SAPI other than Samovar. See php/stubs/samovar.php.
 */
final class Response
{
    private const STATUS_MIN = 200;
    private const STATUS_MAX = 599;

    /** @var string|iterable<string>|resource */
    private $body;

    /**
     * @param string|iterable<string>|resource $body
     * @param array<string, string|int|float|list<string|int|float>> $headers
     *
     * @throws \TypeError when $body has another type
     * @throws \ValueError when $status is out of range
     */
    public function __construct($body = '', private int $status = 200, private array $headers = [])
    {
        if (!\is_string($body) && !is_iterable($body) && !\is_resource($body)) {
            throw new \TypeError(
                'Samovar\Response::__construct(): Argument #1 ($body) must be of type string, iterable or resource, '
                . get_debug_type($body) . ' given',
            );
        }
        if ($status < self::STATUS_MIN || $status > self::STATUS_MAX) {
            throw new \ValueError(
                'Samovar\Response::__construct(): Argument #2 ($status) must be between 200 and 599',
            );
        }
        $this->body = $body;
    }

    private function __clone()
    {
    }

    public function __serialize(): array
    {
        throw new \Exception("Serialization of 'Samovar\\Response' is not allowed");
    }

    public function status(): int
    {
        return $this->status;
    }

    /** @return array<string, string|int|float|list<string|int|float>> */
    public function headers(): array
    {
        return $this->headers;
    }

    /** @return string|iterable<string>|resource */
    public function body(): mixed
    {
        return $this->body;
    }
}
