<?php

declare(strict_types=1);

namespace Samovar;

/**
 * A rate limiter under a SAPI other than Samovar. It limits this process only. See
 * php/stubs/shared.php.
 */
final class RateLimiter
{
    private const NAME_BYTES_MAX = 256;

    /**
     * @var array<string, array{definition: string, full: array<string, float>}> when each bucket
     * will be full again
     */
    private static array $limiters = [];

    public function __construct(private string $name, private float $rate, private int $burst, int $keys = 1024)
    {
        $bytes = \strlen($name);
        match (true) {
            $bytes < 1 || $bytes > self::NAME_BYTES_MAX =>
                throw new \ValueError("the name of a shared object has 1 to 256 bytes, not $bytes"),
            !($rate > 0 && $rate <= 1e9) =>
                throw new \ValueError("a limiter allows more than 0 and at most 1,000,000,000 a second, not $rate"),
            $burst < 1 || $burst > 1_000_000_000 =>
                throw new \ValueError("a limiter's burst is 1 to 1000000000, not $burst"),
            $keys < 1 || $keys > 1 << 20 => throw new \ValueError("a limiter has 1 to 1048576 keys, not $keys"),
            default => null,
        };
        $definition = "rate=$rate burst=$burst keys=$keys";
        self::$limiters[$name] ??= ['definition' => $definition, 'full' => []];
        $found = self::$limiters[$name]['definition'];
        if ($found !== $definition) {
            throw new \Error("the limiter `$name` exists as `$found`, and cannot be `$definition` too");
        }
    }

    private function __clone()
    {
    }

    public function __serialize(): array
    {
        throw new \Exception("Serialization of 'Samovar\\RateLimiter' is not allowed");
    }

    public function allow(string $key = '', int $cost = 1): bool
    {
        $allowed = $this->retryAfter($key, $cost) <= 0.0;
        if ($allowed) {
            self::$limiters[$this->name]['full'][$key] = $this->full($key) + $cost / $this->rate;
        }

        return $allowed;
    }

    public function retryAfter(string $key = '', int $cost = 1): float
    {
        if ($cost < 1 || $cost > $this->burst) {
            throw new \ValueError(
                "the cost $cost is 0, or more than the burst of $this->burst: it would never be allowed",
            );
        }

        return max(0.0, $this->full($key) + ($cost - $this->burst) / $this->rate - self::now());
    }

    public function remaining(string $key = ''): int
    {
        return max(0, $this->burst - (int) ceil(($this->full($key) - self::now()) * $this->rate));
    }

    private function full(string $key): float
    {
        return max(self::$limiters[$this->name]['full'][$key] ?? 0.0, self::now());
    }

    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}
