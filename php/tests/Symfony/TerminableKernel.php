<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Symfony;

use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\HttpKernelInterface;
use Symfony\Component\HttpKernel\TerminableInterface;

/** A short HTTP kernel. Its terminate() takes some time, and then writes a note to a file. */
final class TerminableKernel implements HttpKernelInterface, TerminableInterface
{
    private const TERMINATE_US = 500_000;

    public function __construct(private string $log)
    {
    }

    public function handle(Request $request, int $type = 1, bool $catch = true): Response
    {
        return new Response('handled ' . $request->getPathInfo());
    }

    public function terminate(Request $request, Response $response): void
    {
        usleep(self::TERMINATE_US);
        file_put_contents($this->log, "terminated {$request->getPathInfo()}\n", FILE_APPEND);
    }
}
