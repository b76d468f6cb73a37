<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr7;

use Psr\Http\Message\MessageInterface;
use Psr\Http\Message\StreamInterface;

/**
 * Base class of PSR-7 messages. A property that is null was never changed, and its initial…()
 * method provides the value.
 *
 * Parameters have no types, to be compatible with psr/http-message 1 and 2.
 */
abstract class Message implements MessageInterface
{
    private ?string $version = null;
    private ?HeaderMap $headers = null;
    private ?StreamInterface $body = null;

    abstract protected function initialVersion(): string;

    abstract protected function initialHeaders(): HeaderMap;

    /** Returns the same object on every call. */
    abstract protected function initialBody(): StreamInterface;

    public function getProtocolVersion(): string
    {
        return $this->version ?? $this->initialVersion();
    }

    /**
     * @param string $version
     *
     * @throws \InvalidArgumentException
     */
    public function withProtocolVersion($version): static
    {
        if (!\is_string($version) || preg_match('/^\d(\.\d)?$/D', $version) !== 1) {
            throw new \InvalidArgumentException('The protocol version must be a string such as "1.1"');
        }
        $message = clone $this;
        $message->version = $version;

        return $message;
    }

    /** @return array<string, list<string>> */
    public function getHeaders(): array
    {
        return $this->headerMap()->all();
    }

    /** @param string $name */
    public function hasHeader($name): bool
    {
        return $this->headerMap()->has($name);
    }

    /**
     * @param string $name
     *
     * @return list<string>
     */
    public function getHeader($name): array
    {
        return $this->headerMap()->values($name);
    }

    /** @param string $name */
    public function getHeaderLine($name): string
    {
        return implode(', ', $this->headerMap()->values($name));
    }

    /**
     * @param string $name
     * @param string|list<string> $value
     *
     * @throws \InvalidArgumentException
     */
    public function withHeader($name, $value): static
    {
        return $this->withHeaderMap($this->headerMap()->with($name, $value));
    }

    /**
     * @param string $name
     * @param string|list<string> $value
     *
     * @throws \InvalidArgumentException
     */
    public function withAddedHeader($name, $value): static
    {
        return $this->withHeaderMap($this->headerMap()->withAdded($name, $value));
    }

    /** @param string $name */
    public function withoutHeader($name): static
    {
        return $this->withHeaderMap($this->headerMap()->without($name));
    }

    public function getBody(): StreamInterface
    {
        return $this->body ?? $this->initialBody();
    }

    public function withBody(StreamInterface $body): static
    {
        $message = clone $this;
        $message->body = $body;

        return $message;
    }

    final protected function headerMap(): HeaderMap
    {
        return $this->headers ?? $this->initialHeaders();
    }

    final protected function withHeaderMap(HeaderMap $headers): static
    {
        $message = clone $this;
        $message->headers = $headers;

        return $message;
    }
}
