<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr7;

use Http\Psr7Test\ServerRequestIntegrationTest as IntegrationTest;
use Samovar\Request as NativeRequest;
use Samovar\Runtime\Psr7\ServerRequest;

/** Runs php-http's tests. */
final class ReceivedServerRequestIntegrationTest extends IntegrationTest
{
    public function createSubject()
    {
        $_SERVER += ['REQUEST_METHOD' => 'GET'];

        return ServerRequest::received(Native::$request ?? NativeRequest::fromGlobals());
    }
}
