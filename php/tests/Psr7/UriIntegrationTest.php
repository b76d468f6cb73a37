<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr7;

use Http\Psr7Test\UriIntegrationTest as IntegrationTest;
use Samovar\Runtime\Psr7\Uri;

/** Runs php-http's tests. */
final class UriIntegrationTest extends IntegrationTest
{
    public function createUri($uri)
    {
        return Uri::parse($uri);
    }
}
