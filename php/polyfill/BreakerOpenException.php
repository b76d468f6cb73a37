<?php

declare(strict_types=1);

namespace Samovar;

/** Thrown when a breaker is open. The call was not made. See php/stubs/shared.php. */
final class BreakerOpenException extends \RuntimeException
{
    public float $retryAfter = 0.0;
}
