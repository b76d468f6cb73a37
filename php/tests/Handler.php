<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests;

use Nyholm\Psr7\Response;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Samovar\Runtime\Psr7\Stream;

/** A PSR-15 handler for the tests. */
final class Handler implements RequestHandlerInterface
{
    public const BIG_BYTES = 1_000_000;

    private int $count = 0;

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        $this->count++;

        return match ($request->getUri()->getPath()) {
            '/echo' => $this->echo($request),
            '/upload' => $this->upload($request),
            '/hash' => new Response(201, body: $this->hash($request)),
            '/big' => new Response(200, ['Content-Type' => 'application/octet-stream'], $this->big()),
            '/cookies' => $this->cookies(),
            '/none' => new Response(204),
            default => new Response(200, ['Content-Type' => 'text/plain'], (string) $this->count),
        };
    }

    private function echo(ServerRequestInterface $request): ResponseInterface
    {
        return new Response(200, ['Content-Type' => 'application/json'], json_encode([
            'method' => $request->getMethod(),
            'target' => $request->getRequestTarget(),
            'uri' => (string) $request->getUri(),
            'query' => $request->getQueryParams(),
            'cookies' => $request->getCookieParams(),
            'form' => $request->getParsedBody(),
            'header' => $request->getHeaderLine('X-Test'),
            'body' => (string) $request->getBody(),
            'size' => $request->getBody()->getSize(),
            'user' => $request->getServerParams()['PHP_AUTH_USER'] ?? null,
        ], JSON_THROW_ON_ERROR));
    }

    private function upload(ServerRequestInterface $request): ResponseInterface
    {
        $file = $request->getUploadedFiles()['letters']['first'][0];
        $target = tempnam(sys_get_temp_dir(), 'samovar-moved-');
        $file->moveTo($target);
        $text = file_get_contents($target);
        unlink($target);

        return new Response(body: "{$file->getClientFilename()} {$file->getClientMediaType()} $text");
    }

    private function hash(ServerRequestInterface $request): string
    {
        $hash = hash_init('sha256');
        $body = $request->getBody();
        while (!$body->eof()) {
            hash_update($hash, $body->read(8192));
        }

        return hash_final($hash);
    }

    private function big(): Stream
    {
        return Stream::opening(static function () {
            $stream = fopen('php://temp', 'w+b');
            fwrite($stream, str_repeat('b', self::BIG_BYTES));

            return $stream;
        });
    }

    private function cookies(): ResponseInterface
    {
        header('Set-Cookie: by=php');

        return (new Response())->withAddedHeader('Set-Cookie', 'a=1')->withAddedHeader('Set-Cookie', 'b=2');
    }
}
