<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr7;

use Psr\Http\Message\StreamInterface;
use Psr\Http\Message\UriInterface;

/**
 * A synthetic request, used for warm-up.
 *
 * @internal
 */
final class Made implements Origin
{
    private HeaderMap $headers;
    private StreamInterface $body;

    /** @param array<string, mixed> $server */
    public function __construct(private string $method, private UriInterface $uri, private array $server = [])
    {
        $host = Uri::hostHeader($uri);
        $this->headers = HeaderMap::received($host === '' ? [] : ['Host' => $host]);
        $this->body = Stream::of('');
    }

    public function method(): string
    {
        return $this->method;
    }

    public function target(): ?string
    {
        return null;
    }

    public function uri(): UriInterface
    {
        return $this->uri;
    }

    public function version(): string
    {
        return '1.1';
    }

    public function headers(): HeaderMap
    {
        return $this->headers;
    }

    public function body(): StreamInterface
    {
        return $this->body;
    }

    public function server(): array
    {
        return $this->server;
    }

    public function cookies(): array
    {
        return [];
    }

    public function query(): array
    {
        return [];
    }

    public function files(): array
    {
        return [];
    }

    public function form(): ?array
    {
        return null;
    }

    public function attributes(): array
    {
        return [];
    }
}
