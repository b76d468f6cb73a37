<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr17;

use Interop\Http\Factory\RequestFactoryTestCase;
use Samovar\Runtime\Psr17\Factory;

/** http-interop's tests. */
final class RequestFactoryTest extends RequestFactoryTestCase
{
    protected function createRequestFactory()
    {
        return new Factory();
    }

    protected function createUri($uri)
    {
        return (new Factory())->createUri($uri);
    }
}
