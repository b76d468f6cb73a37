<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr7;

use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\UploadedFileInterface;
use Psr\Http\Message\UriInterface;
use Samovar\Request as NativeRequest;

/** A PSR-7 server request. For a native request, data is copied only on first use. */
final class ServerRequest extends Request implements ServerRequestInterface
{
    /** @var array<array-key, mixed>|null */
    private ?array $cookies = null;
    /** @var array<array-key, mixed>|null */
    private ?array $query = null;
    /** @var array<array-key, mixed>|null */
    private ?array $files = null;
    /** @var array<array-key, mixed>|null */
    private ?array $attributes = null;
    /** @var array<array-key, mixed>|object|null */
    private $parsed = null;
    private bool $isParsed = false;

    /** Wraps $request. The native request's attributes are copied at this moment. */
    public static function received(NativeRequest $request): self
    {
        return new self(new Received($request));
    }

    /**
     * Creates a synthetic request.
     *
     * @param array<string, mixed> $server
     *
     * @throws \InvalidArgumentException when the method or URI is not valid
     */
    public static function of(string $method, string|UriInterface $uri, array $server = []): self
    {
        return new self(new Made(self::method($method), \is_string($uri) ? Uri::parse($uri) : $uri, $server));
    }

    /** @return array<string, mixed> */
    public function getServerParams(): array
    {
        return $this->origin()->server();
    }

    /** @return array<array-key, mixed> */
    public function getCookieParams(): array
    {
        return $this->cookies ?? $this->origin()->cookies();
    }

    /** @param array<array-key, mixed> $cookies */
    public function withCookieParams(array $cookies): static
    {
        $request = clone $this;
        $request->cookies = $cookies;

        return $request;
    }

    /** @return array<array-key, mixed> */
    public function getQueryParams(): array
    {
        return $this->query ?? $this->origin()->query();
    }

    /** @param array<array-key, mixed> $query */
    public function withQueryParams(array $query): static
    {
        $request = clone $this;
        $request->query = $query;

        return $request;
    }

    /** @return array<array-key, UploadedFileInterface|array<array-key, mixed>> */
    public function getUploadedFiles(): array
    {
        return $this->files ?? $this->origin()->files();
    }

    /**
     * @param array<array-key, mixed> $uploadedFiles a tree whose leaves are UploadedFileInterface
     *
     * @throws \InvalidArgumentException when a leaf is anything else
     */
    public function withUploadedFiles(array $uploadedFiles): static
    {
        array_walk_recursive($uploadedFiles, static function (mixed $leaf): void {
            if (!$leaf instanceof UploadedFileInterface) {
                throw new \InvalidArgumentException('An uploaded file must be a ' . UploadedFileInterface::class);
            }
        });
        $request = clone $this;
        $request->files = $uploadedFiles;

        return $request;
    }

    /** @return array<array-key, mixed>|object|null the form of a POST; null for every other body */
    public function getParsedBody()
    {
        return $this->isParsed ? $this->parsed : $this->origin()->form();
    }

    /**
     * @param array<array-key, mixed>|object|null $data
     *
     * @throws \InvalidArgumentException
     */
    public function withParsedBody($data): static
    {
        if ($data !== null && !\is_array($data) && !\is_object($data)) {
            throw new \InvalidArgumentException(
                'A parsed body must be an array, an object or null, ' . get_debug_type($data) . ' given',
            );
        }
        $request = clone $this;
        $request->parsed = $data;
        $request->isParsed = true;

        return $request;
    }

    /** @return array<array-key, mixed> */
    public function getAttributes(): array
    {
        return $this->attributes ?? $this->origin()->attributes();
    }

    /**
     * @param string $name
     * @param mixed $default
     *
     * @return mixed
     */
    public function getAttribute($name, $default = null)
    {
        $attributes = $this->getAttributes();

        return \array_key_exists($name, $attributes) ? $attributes[$name] : $default;
    }

    /**
     * @param string $name
     * @param mixed $value
     */
    public function withAttribute($name, $value): static
    {
        $request = clone $this;
        $request->attributes = [$name => $value] + $this->getAttributes();

        return $request;
    }

    /** @param string $name */
    public function withoutAttribute($name): static
    {
        $request = clone $this;
        $request->attributes = $this->getAttributes();
        unset($request->attributes[$name]);

        return $request;
    }
}
