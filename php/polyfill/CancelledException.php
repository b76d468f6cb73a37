<?php

declare(strict_types=1);

namespace Samovar;

/** Thrown by await() when the task was cancelled. */
class CancelledException extends \RuntimeException
{
}
