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
        return \is_resource($data) ? Stream::over($data) : Stream::of($data);
    }
}
