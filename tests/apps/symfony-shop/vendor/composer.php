<?php

declare(strict_types=1);

namespace Composer;

/** Replaces Composer's class. It lists no packages, because the libraries are Debian packages. */
final class InstalledVersions
{
    public static function isInstalled(string $package, bool $includeDevRequirements = true): bool
    {
        return false;
    }

    /** @return list<array<string, mixed>> */
    public static function getAllRawData(): array
    {
        return [];
    }
}
