<?php

declare(strict_types=1);

namespace Bench;

use PHPUnit\Framework\TestCase;
use Symfony\Component\HttpFoundation\Request;

/** A test that boots the kernel and makes requests, as Symfony's WebTestCase does. */
abstract class FunctionalTestCase extends TestCase
{
    protected function assertPage(string $path, int $status, int $requests): void
    {
        for ($n = 0; $n < $requests; $n++) {
            $kernel = new TestKernel('test', false);
            self::assertSame($status, $kernel->handle(Request::create($path))->getStatusCode());
            $kernel->shutdown();
        }
    }
}
