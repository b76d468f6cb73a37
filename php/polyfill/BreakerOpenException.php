<?php

declare(strict_types=1);

namespace Samovar;

/** A breaker is open: the call was not made. php/stubs/samovar.php says more. */
final class BreakerOpenException extends \RuntimeException
{
    public float $retryAfter = 0.0;
}
