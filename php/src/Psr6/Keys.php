<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr6;

/** Validates keys of PSR-6 and PSR-16, and converts their times to live. */
final class Keys
{
    /** Reserved by PSR-6, 1.2. */
    private const RESERVED = '{}()/\@:';
    /** Maximum key length of a Samovar\Cache. */
    private const BYTES_MAX = 1024;

    private function __construct()
    {
    }

    /** Returns the reason why a key is invalid, or null when it is valid. */
    public static function wrong(mixed $key): ?string
    {
        return match (true) {
            !\is_string($key) => 'a key must be a string, not ' . get_debug_type($key),
            $key === '' => 'a key must have at least one byte',
            strpbrk($key, self::RESERVED) !== false => "the key \"$key\" has a reserved character, one of "
                . self::RESERVED,
            \strlen($key) > self::BYTES_MAX => 'a key must have at most 1024 bytes, not ' . \strlen($key),
            default => null,
        };
    }

    /** Returns the seconds from now; null: no expiry. */
    public static function seconds(\DateInterval|int|null $ttl): ?float
    {
        if (!$ttl instanceof \DateInterval) {
            return $ttl === null ? null : (float) $ttl;
        }
        $now = new \DateTimeImmutable();

        return self::until($now->add($ttl), $now);
    }

    /** Returns the seconds until $then. */
    public static function until(\DateTimeInterface $then, ?\DateTimeInterface $now = null): float
    {
        $now ??= new \DateTimeImmutable();

        return (float) $then->format('U.u') - (float) $now->format('U.u');
    }
}
