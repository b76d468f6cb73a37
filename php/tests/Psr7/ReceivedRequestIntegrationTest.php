<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr7;

use Http\Psr7Test\RequestIntegrationTest as IntegrationTest;
use Samovar\Request as NativeRequest;
use Samovar\Runtime\Psr7\ServerRequest;

/** php-http's tests. */
final class ReceivedRequestIntegrationTest extends IntegrationTest
{
    /** The server's own, where a server runs this. */
    public static ?NativeRequest $native = null;

    public function createSubject()
    {
        return ServerRequest::received(self::$native ?? NativeRequest::of());
    }
}
