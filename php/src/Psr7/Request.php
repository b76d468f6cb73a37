<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr7;

use Psr\Http\Message\RequestInterface;
use Psr\Http\Message\StreamInterface;
use Psr\Http\Message\UriInterface;

/** Base class of PSR-7 requests, without the parts of a server request. */
abstract class Request extends Message implements RequestInterface
{
    private ?string $method = null;
    private ?string $target = null;
    private ?UriInterface $uri = null;

    final protected function __construct(private Origin $origin)
    {
    }

    public function getRequestTarget(): string
    {
        if ($this->target !== null) {
            return $this->target;
        }
        if ($this->uri === null && ($target = $this->origin->target()) !== null) {
            return $target;
        }
        $uri = $this->getUri();
        $target = $uri->getPath() === '' ? '/' : $uri->getPath();

        return $uri->getQuery() === '' ? $target : "$target?{$uri->getQuery()}";
    }

    /**
     * @param string $requestTarget
     *
     * @throws \InvalidArgumentException
     */
    public function withRequestTarget($requestTarget): static
    {
        if (!\is_string($requestTarget) || preg_match('/^[^\s\x00-\x1F\x7F]+$/D', $requestTarget) !== 1) {
            throw new \InvalidArgumentException('The request target must be a string without whitespace');
        }
        $request = clone $this;
        $request->target = $requestTarget;

        return $request;
    }

    public function getMethod(): string
    {
        return $this->method ?? $this->origin->method();
    }

    /**
     * @param string $method
     *
     * @throws \InvalidArgumentException
     */
    public function withMethod($method): static
    {
        $request = clone $this;
        $request->method = self::method($method);

        return $request;
    }

    public function getUri(): UriInterface
    {
        return $this->uri ?? $this->origin->uri();
    }

    /** @param bool $preserveHost */
    public function withUri(UriInterface $uri, $preserveHost = false): static
    {
        $request = clone $this;
        $request->uri = $uri;
        $host = Uri::hostHeader($uri);
        if ($host === '' || ($preserveHost && $this->getHeaderLine('Host') !== '')) {
            return $request;
        }

        return $request->withHeaderMap($request->headerMap()->withHost($host));
    }

    protected function initialVersion(): string
    {
        return $this->origin->version();
    }

    protected function initialHeaders(): HeaderMap
    {
        return $this->origin->headers();
    }

    protected function initialBody(): StreamInterface
    {
        return $this->origin->body();
    }

    final protected function origin(): Origin
    {
        return $this->origin;
    }

    /** @throws \InvalidArgumentException */
    final protected static function method(mixed $method): string
    {
        if (!\is_string($method) || preg_match('/^[!#$%&\'*+.^_`|~0-9A-Za-z-]+$/D', $method) !== 1) {
            throw new \InvalidArgumentException('The method must be a token such as "GET"');
        }

        return $method;
    }
}
