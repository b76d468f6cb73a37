<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr7;

use Http\Psr7Test\RequestIntegrationTest as IntegrationTest;
use Samovar\Request as NativeRequest;
use Samovar\Runtime\Psr7\ServerRequest;

/** Runs php-http's tests. */
final class ReceivedRequestIntegrationTest extends IntegrationTest
{
    public function createSubject()
    {
        return ServerRequest::received(Native::$request ?? NativeRequest::of());
    }
}
