<?php

declare(strict_types=1);

namespace Samovar\Runtime\Octane;

/**
 * Thrown for a feature of other Octane servers that Samovar does not have. The message names the
 * feature and an alternative.
 */
final class NotAvailable extends \RuntimeException
{
    public static function tasks(): self
    {
        return new self(
            "Octane::concurrently() is not available: Samovar has no task workers\n"
            . 'hint: set `octane.samovar.tasks` to "sequential" to run the tasks one after another',
        );
    }

    public static function cache(): self
    {
        return new self(
            "the cache store `octane` is not available: its workers have no shared memory for it\n"
            . 'hint: use `apc` or `redis` for a shared store, or `array` for a store that lasts one request',
        );
    }
}
