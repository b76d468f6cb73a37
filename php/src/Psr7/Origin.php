<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr7;

use Psr\Http\Message\StreamInterface;
use Psr\Http\Message\UploadedFileInterface;
use Psr\Http\Message\UriInterface;

/**
 * The original values of a request. All copies that the with…() methods create share one Origin. It
 * caches values on first use, which changes no copy.
 *
 * @internal
 */
interface Origin
{
    public function method(): string;

    /** Returns the target as the client sent it, or null when it is derived from the URI. */
    public function target(): ?string;

    public function uri(): UriInterface;

    public function version(): string;

    public function headers(): HeaderMap;

    public function body(): StreamInterface;

    /** @return array<string, mixed> */
    public function server(): array;

    /** @return array<array-key, mixed> */
    public function cookies(): array;

    /** @return array<array-key, mixed> */
    public function query(): array;

    /** @return array<array-key, UploadedFileInterface|array<array-key, mixed>> */
    public function files(): array;

    /** @return array<array-key, mixed>|null */
    public function form(): ?array;

    /** @return array<array-key, mixed> */
    public function attributes(): array;
}
