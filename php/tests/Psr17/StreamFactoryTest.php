<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr17;

use Interop\Http\Factory\StreamFactoryTestCase;
use Samovar\Runtime\Psr17\Factory;

/** http-interop's tests. */
final class StreamFactoryTest extends StreamFactoryTestCase
{
    protected function createStreamFactory()
    {
        return new Factory();
    }
}
