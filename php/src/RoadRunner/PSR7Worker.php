<?php

declare(strict_types=1);

namespace Samovar\Runtime\RoadRunner;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestFactoryInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\UploadedFileFactoryInterface;
use Psr\Http\Message\UploadedFileInterface;
use Samovar\Runtime\Psr15\Answer;

/**
 * Spiral\RoadRunner\Http\PSR7Worker: requests and responses as PSR-7 objects of the library that
 * the script chose.
 */
class PSR7Worker implements PSR7WorkerInterface
{
    /**
     * For compatibility. In the original, 0 sends a body in one piece. Here large bodies are always
     * sent in pieces.
     */
    public int $chunkSize = 0;

    private HttpWorker $httpWorker;

    public function __construct(
        WorkerInterface $worker,
        private ServerRequestFactoryInterface $requestFactory,
        private StreamFactoryInterface $streamFactory,
        private UploadedFileFactoryInterface $uploadsFactory,
    ) {
        $this->httpWorker = new HttpWorker($worker);
    }

    public function getWorker(): WorkerInterface
    {
        return $this->httpWorker->getWorker();
    }

    public function getHttpWorker(): HttpWorker
    {
        return $this->httpWorker;
    }

    public function waitRequest(): ?ServerRequestInterface
    {
        $received = $this->httpWorker->waitRequest();

        return $received === null ? null : $this->made($received);
    }

    public function respond(ResponseInterface $response): void
    {
        $body = Answer::of($response->withoutHeader('Set-Cookie'), $_SERVER['REQUEST_METHOD'])->body();
        $this->httpWorker->respond($response->getStatusCode(), $body, $response->getHeaders());
    }

    private function made(HttpRequest $received): ServerRequestInterface
    {
        $request = $this->requestFactory
            ->createServerRequest($received->method, $received->uri, $_SERVER)
            ->withProtocolVersion(substr($received->protocol, \strlen('HTTP/')))
            ->withCookieParams($received->cookies)
            ->withQueryParams($received->query)
            ->withUploadedFiles($this->uploads($received->uploads));
        foreach ($received->headers as $name => $values) {
            $request = $request->withHeader((string) $name, $values);
        }
        if ($received->parsed) {
            $request = $request->withParsedBody($received->getParsedBody());
        }
        if ($received->body !== '') {
            $request = $request->withBody($this->streamFactory->createStream($received->body));
        }

        return $request;
    }

    /**
     * @param array<array-key, mixed> $tree
     *
     * @return array<array-key, UploadedFileInterface|array<array-key, mixed>>
     */
    private function uploads(array $tree): array
    {
        return array_map(
            fn (array $entry): mixed => \is_string($entry['tmpName'] ?? null)
                ? $this->upload($entry)
                : $this->uploads($entry),
            $tree,
        );
    }

    /** @param array<string, mixed> $file */
    private function upload(array $file): UploadedFileInterface
    {
        $stream = $file['error'] === UPLOAD_ERR_OK
            ? $this->streamFactory->createStreamFromFile($file['tmpName'])
            : $this->streamFactory->createStream();

        return $this->uploadsFactory->createUploadedFile(
            $stream,
            $file['size'],
            $file['error'],
            $file['name'],
            $file['mime'],
        );
    }
}
