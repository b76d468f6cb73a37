<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr16;

use Psr\SimpleCache\InvalidArgumentException;

/** Thrown for a key or a time to live that PSR-16 does not allow. */
final class InvalidArgument extends \InvalidArgumentException implements InvalidArgumentException
{
}
