<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr7;

use Http\Psr7Test\StreamIntegrationTest as IntegrationTest;
use Samovar\Runtime\Psr7\Stream;

/** Runs php-http's tests. */
final class StreamIntegrationTest extends IntegrationTest
{
    public function createStream($data)
    {
        if (!\is_resource($data)) {
            return Stream::of($data);
        }
        $stream = Stream::opening(static fn () => $data);
        // Opens the resource, because an unused stream has nothing to close.
        $stream->eof();

        return $stream;
    }
}
