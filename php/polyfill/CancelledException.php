<?php

declare(strict_types=1);

namespace Samovar;

/** The task that was awaited was cancelled. */
class CancelledException extends \RuntimeException
{
}
