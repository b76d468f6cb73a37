<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr7;

use Psr\Http\Message\StreamInterface;
use Psr\Http\Message\UriInterface;
use Samovar\Request as NativeRequest;

/**
 * A request that Samovar received. Data is copied from the native request only on first use.
 *
 * @internal
 */
final class Received implements Origin
{
    private const FORM_TYPES = ['application/x-www-form-urlencoded', 'multipart/form-data'];

    private ?UriInterface $uri = null;
    private ?HeaderMap $headers = null;
    private ?StreamInterface $body = null;
    /** @var array<string, mixed>|null */
    private ?array $server = null;
    /** @var array<array-key, mixed>|null */
    private ?array $files = null;

    public function __construct(private NativeRequest $request)
    {
    }

    public function method(): string
    {
        return $this->request->method();
    }

    public function target(): ?string
    {
        return $this->request->uri();
    }

    public function uri(): UriInterface
    {
        return $this->uri ??= $this->madeUri();
    }

    public function version(): string
    {
        return explode('/', $this->request->protocol(), 2)[1] ?? '1.1';
    }

    public function headers(): HeaderMap
    {
        return $this->headers ??= HeaderMap::received($this->request->headers());
    }

    public function body(): StreamInterface
    {
        return $this->body ??= Stream::opening(fn () => $this->request->bodyStream(), $this->bodySize());
    }

    public function server(): array
    {
        if ($this->server === null) {
            $this->server = $this->request->server();
            // Adds the rest of $_SERVER: REQUEST_TIME, PHP_AUTH_USER and .env variables of the
            // boot. After the request has ended, server() is empty and $_SERVER belongs to another
            // request.
            $this->server += $this->server === [] ? [] : $_SERVER;
        }

        return $this->server;
    }

    public function cookies(): array
    {
        return $this->request->cookies();
    }

    public function query(): array
    {
        return $this->request->query();
    }

    public function files(): array
    {
        return $this->files ??= UploadedFiles::tree($this->request->files());
    }

    public function form(): ?array
    {
        $isForm = $this->request->method() === 'POST' && \in_array($this->formType(), self::FORM_TYPES, true);

        return $isForm ? $this->request->form() : null;
    }

    public function attributes(): array
    {
        return $this->request->attributes();
    }

    /** Returns null when the client did not declare the size, or when PHP has parsed the body. */
    private function bodySize(): ?int
    {
        $length = $this->request->header('content-length', '');
        $isTaken = $this->form() !== null && $this->formType() === 'multipart/form-data';

        return ctype_digit($length) && !$isTaken ? (int) $length : null;
    }

    private function formType(): string
    {
        return strtolower(trim(explode(';', $this->request->header('content-type', ''), 2)[0]));
    }

    private function madeUri(): UriInterface
    {
        // HTTP_HOST is the host that a trusted proxy forwards. The Host header is the proxy's own.
        $server = $this->request->server();
        $host = $server['HTTP_HOST'] ?? '';
        $host = $host !== '' ? $host : $this->request->host();

        return Uri::received(
            $this->request->isSecure() ? 'https' : 'http',
            $host,
            $this->request->path(),
            $this->request->queryString(),
        );
    }
}
