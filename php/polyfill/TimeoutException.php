<?php

declare(strict_types=1);

namespace Samovar;

/** Something was not there in the time that was given. */
class TimeoutException extends \RuntimeException
{
}
