<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr7;

use Samovar\Request;

/**
 * The request for php-http's tests: the server's own request under Samovar, otherwise a synthetic
 * one.
 */
final class Native
{
    public static ?Request $request = null;
}
