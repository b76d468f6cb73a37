<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr17;

use Psr\Http\Message\RequestFactoryInterface;
use Psr\Http\Message\RequestInterface;
use Psr\Http\Message\ResponseFactoryInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestFactoryInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\StreamInterface;
use Psr\Http\Message\UploadedFileFactoryInterface;
use Psr\Http\Message\UploadedFileInterface;
use Psr\Http\Message\UriFactoryInterface;
use Psr\Http\Message\UriInterface;
use Samovar\Runtime\Psr7\Request;
use Samovar\Runtime\Psr7\Response;
use Samovar\Runtime\Psr7\ServerRequest;
use Samovar\Runtime\Psr7\Stream;
use Samovar\Runtime\Psr7\UploadedFile;
use Samovar\Runtime\Psr7\Uri;

/** All PSR-17 factories in one, for the PSR-7 objects of this package. */
final class Factory implements
    RequestFactoryInterface,
    ResponseFactoryInterface,
    ServerRequestFactoryInterface,
    StreamFactoryInterface,
    UploadedFileFactoryInterface,
    UriFactoryInterface
{
    /** @param UriInterface|string $uri */
    public function createRequest(string $method, $uri): RequestInterface
    {
        return Request::of($method, $uri);
    }

    public function createResponse(int $code = 200, string $reasonPhrase = ''): ResponseInterface
    {
        return new Response($code, phrase: $reasonPhrase);
    }

    /**
     * @param UriInterface|string $uri
     * @param array<string, mixed> $serverParams taken as they are: nothing is derived from them
     */
    public function createServerRequest(string $method, $uri, array $serverParams = []): ServerRequestInterface
    {
        return ServerRequest::of($method, $uri, $serverParams);
    }

    public function createStream(string $content = ''): StreamInterface
    {
        return Stream::of($content);
    }

    /**
     * @throws \RuntimeException when the file cannot be opened
     * @throws \InvalidArgumentException when the mode is none
     */
    public function createStreamFromFile(string $filename, string $mode = 'r'): StreamInterface
    {
        if (preg_match('/^[rwaxc][bt+e]*$/D', $mode) !== 1) {
            throw new \InvalidArgumentException("`$mode` is no mode to open a file in");
        }
        $stream = $filename === '' ? false : @fopen($filename, $mode);

        return $stream === false
            ? throw new \RuntimeException("cannot open `$filename`")
            : Stream::over($stream);
    }

    /** @param resource $resource */
    public function createStreamFromResource($resource): StreamInterface
    {
        return Stream::over($resource);
    }

    public function createUploadedFile(
        StreamInterface $stream,
        ?int $size = null,
        int $error = UPLOAD_ERR_OK,
        ?string $clientFilename = null,
        ?string $clientMediaType = null,
    ): UploadedFileInterface {
        return UploadedFile::over($stream, $size, $error, $clientFilename, $clientMediaType);
    }

    public function createUri(string $uri = ''): UriInterface
    {
        return Uri::parse($uri);
    }
}
