<?php

declare(strict_types=1);

namespace Samovar\Runtime\Octane;

/** Something that other Octane servers have, and Samovar has not. The message says what, and what to do instead. */
final class NotAvailable extends \RuntimeException
{
    public static function tasks(): self
    {
        return new self(
            "Octane::concurrently() is not available: Samovar has no task workers\n"
            . 'hint: `octane.samovar.tasks` = "sequential" runs the tasks one after another',
        );
    }

    public static function cache(): self
    {
        return new self(
            "the cache store `octane` is not available: Samovar has no memory that its workers share\n"
            . 'hint: the stores `apc` and `redis` are shared, `array` lives as long as its request',
        );
    }
}
