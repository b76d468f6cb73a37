<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr6;

/** Which keys PSR-6 and PSR-16 allow, and what they understand by a time to live. */
final class Keys
{
    /** Reserved by PSR-6, 1.2. */
    private const RESERVED = '{}()/\@:';
    /** Longest key of a Samovar\Cache. */
    private const BYTES_MAX = 1024;

    private function __construct()
    {
    }

    /** What is wrong with a key; null: nothing. */
    public static function wrong(mixed $key): ?string
    {
        return match (true) {
            !\is_string($key) => 'a key is a string, not ' . get_debug_type($key),
            $key === '' => 'a key has at least one byte',
            strpbrk($key, self::RESERVED) !== false => "the key \"$key\" has one of the reserved " . self::RESERVED,
            \strlen($key) > self::BYTES_MAX => 'a key has at most 1024 bytes, not ' . \strlen($key),
            default => null,
        };
    }

    /** Seconds from now; null: for ever. */
    public static function seconds(\DateInterval|int|null $ttl): ?float
    {
        if (!$ttl instanceof \DateInterval) {
            return $ttl === null ? null : (float) $ttl;
        }
        $now = new \DateTimeImmutable();

        return self::until($now->add($ttl), $now);
    }

    /** Seconds until then. */
    public static function until(\DateTimeInterface $then, ?\DateTimeInterface $now = null): float
    {
        $now ??= new \DateTimeImmutable();

        return (float) $then->format('U.u') - (float) $now->format('U.u');
    }
}
