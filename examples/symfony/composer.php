<?php

declare(strict_types=1);

namespace Composer;

/**
 * Replaces Composer's list of installed packages, which Symfony reads since version 6. The
 * list is empty here.
 */
final class InstalledVersions
{
    public static function isInstalled(string $package, bool $withDevelopment = true): bool
    {
        return false;
    }
}
