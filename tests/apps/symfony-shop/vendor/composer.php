<?php

declare(strict_types=1);

namespace Composer;

/** In place of Composer's own: the libraries are Debian's, so it has installed none. */
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
