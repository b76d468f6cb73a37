<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr7;

use Psr\Http\Message\StreamInterface;
use Psr\Http\Message\UploadedFileInterface;
use Psr\Http\Message\UriInterface;

/**
 * What a request was when it was made. All copies that with…() makes of it share one: what it finds out when it is
 * first asked, it finds out once, and no copy is changed by that.
 *
 * @internal
 */
interface Origin
{
    public function method(): string;

    /** The target as the client sent it; null: made of the URI. */
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
