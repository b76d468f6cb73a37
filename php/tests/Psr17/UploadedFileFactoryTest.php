<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr17;

use Interop\Http\Factory\UploadedFileFactoryTestCase;
use Samovar\Runtime\Psr17\Factory;

/** http-interop's tests. */
final class UploadedFileFactoryTest extends UploadedFileFactoryTestCase
{
    protected function createUploadedFileFactory()
    {
        return new Factory();
    }

    protected function createStream($content)
    {
        return (new Factory())->createStream($content);
    }
}
