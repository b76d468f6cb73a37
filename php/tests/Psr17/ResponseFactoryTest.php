<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr17;

use Interop\Http\Factory\ResponseFactoryTestCase;
use Samovar\Runtime\Psr17\Factory;

/** http-interop's tests. */
final class ResponseFactoryTest extends ResponseFactoryTestCase
{
    protected function createResponseFactory()
    {
        return new Factory();
    }
}
