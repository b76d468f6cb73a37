<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr7;

use Http\Psr7Test\ServerRequestIntegrationTest as IntegrationTest;
use Samovar\Runtime\Psr7\ServerRequest;

/** Runs php-http's tests. */
final class MadeServerRequestIntegrationTest extends IntegrationTest
{
    public function createSubject()
    {
        return ServerRequest::of('GET', '/', $_SERVER);
    }
}
