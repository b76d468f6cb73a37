<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr7;

use Http\Psr7Test\StreamIntegrationTest as IntegrationTest;
use Samovar\Runtime\Psr7\Stream;

/** php-http's tests. */
final class StreamIntegrationTest extends IntegrationTest
{
    public function createStream($data)
    {
        if (!\is_resource($data)) {
            return Stream::of($data);
        }
        $stream = Stream::opening(static fn () => $data);
        // From here on it has the resource: one that nobody has used has nothing to close.
        $stream->eof();

        return $stream;
    }
}
