<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr7;

use Http\Psr7Test\ResponseIntegrationTest as IntegrationTest;
use Samovar\Runtime\Psr7\Response;

/** php-http's tests. */
final class ResponseIntegrationTest extends IntegrationTest
{
    public function createSubject()
    {
        return new Response();
    }
}
