<?php

declare(strict_types=1);

namespace Samovar\Bench\Psr7;

use Psr\Http\Message\ResponseFactoryInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;

use function Samovar\Bench\Echoing\answer;

use const Samovar\Bench\Echoing\HEADERS;

/** Handler of bench/apps/echo. */
final class Echoing implements RequestHandlerInterface
{
    public function __construct(private readonly ResponseFactoryInterface $factory)
    {
    }

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        $headers = [];
        foreach (HEADERS as $name) {
            $headers[$name] = $request->hasHeader($name) ? $request->getHeaderLine($name) : null;
        }
        [$status, $json] = answer((string) $request->getBody(), $headers);
        $response = $this->factory->createResponse($status)->withHeader('Content-Type', 'application/json');
        $response->getBody()->write($json);

        return $response;
    }
}
