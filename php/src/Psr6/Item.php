<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr6;

use Psr\Cache\CacheItemInterface;

/**
 * A cache item of Pool.
 *
 * Parameters have no types, to be compatible with versions 1 to 3 of the interface.
 */
final class Item implements CacheItemInterface
{
    /** Expiry as Unix time; null: never. */
    private ?float $until = null;

    /** @internal for the pool */
    public function __construct(private string $key, private mixed $value, private bool $is_hit)
    {
    }

    public function getKey(): string
    {
        return $this->key;
    }

    public function get(): mixed
    {
        return $this->value;
    }

    public function isHit(): bool
    {
        return $this->is_hit;
    }

    public function set($value): static
    {
        $this->value = $value;

        return $this;
    }

    public function expiresAt($expiration): static
    {
        $this->until = match (true) {
            $expiration === null => null,
            $expiration instanceof \DateTimeInterface => microtime(true) + Keys::until($expiration),
            default =>
                throw new InvalidArgument(
                    'an expiration time must be a DateTimeInterface or null, not ' . get_debug_type($expiration),
                ),
        };

        return $this;
    }

    public function expiresAfter($time): static
    {
        if ($time !== null && !\is_int($time) && !$time instanceof \DateInterval) {
            throw new InvalidArgument(
                'a time to live must be an int, a DateInterval or null, not ' . get_debug_type($time),
            );
        }
        $seconds = Keys::seconds($time);
        $this->until = $seconds === null ? null : microtime(true) + $seconds;

        return $this;
    }

    /** @internal remaining seconds; null: no expiry */
    public function left(): ?float
    {
        return $this->until === null ? null : $this->until - microtime(true);
    }
}
