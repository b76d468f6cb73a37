<?php

declare(strict_types=1);

namespace Composer;

/** What Symfony asks Composer for since version 6: which packages it has installed. Here it has none. */
final class InstalledVersions
{
    public static function isInstalled(string $package, bool $withDevelopment = true): bool
    {
        return false;
    }
}
