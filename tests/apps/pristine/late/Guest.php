<?php

declare(strict_types=1);

namespace Pristine\Late;

/** Loaded below the checkpoint, by the pages that need it. */
final class Guest
{
    private static int $greeted = 0;

    public function greet(string $name): string
    {
        return 'Guest ' . ++self::$greeted . ': ' . $name;
    }
}
