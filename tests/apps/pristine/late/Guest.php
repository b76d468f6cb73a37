<?php

declare(strict_types=1);

namespace Pristine\Late;

/** A class that is loaded below the checkpoint, by the pages that need it. */
final class Guest
{
    private static int $greeted = 0;

    public function greet(string $name): string
    {
        return 'Guest ' . ++self::$greeted . ': ' . $name;
    }
}
