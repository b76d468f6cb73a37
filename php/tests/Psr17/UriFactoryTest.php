<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr17;

use Interop\Http\Factory\UriFactoryTestCase;
use Samovar\Runtime\Psr17\Factory;

/** http-interop's tests. */
final class UriFactoryTest extends UriFactoryTestCase
{
    protected function createUriFactory()
    {
        return new Factory();
    }
}
