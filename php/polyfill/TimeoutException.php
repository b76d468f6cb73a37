<?php

declare(strict_types=1);

namespace Samovar;

/** Thrown when an operation did not complete within its timeout. */
class TimeoutException extends \RuntimeException
{
}
