<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr7;

use Samovar\Request;

/** The request that php-http's tests are run on: the server's own where a server runs them, else one of the tests. */
final class Native
{
    public static ?Request $request = null;
}
