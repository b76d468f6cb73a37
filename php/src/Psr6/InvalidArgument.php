<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr6;

use Psr\Cache\InvalidArgumentException;

/** Thrown for a key or a time to live that PSR-6 does not allow. */
final class InvalidArgument extends \InvalidArgumentException implements InvalidArgumentException
{
}
