<?php

declare(strict_types=1);

namespace Samovar;

/**
 * A counter under a SAPI other than Samovar. It belongs to this process only. See
 * php/stubs/shared.php.
 */
final class Counter
{
    private const NAME_BYTES_MAX = 256;

    /** @var array<string, int> */
    private static array $numbers = [];

    public function __construct(private string $name)
    {
        $bytes = \strlen($name);
        if ($bytes < 1 || $bytes > self::NAME_BYTES_MAX) {
            throw new \ValueError("the name of a shared object has 1 to 256 bytes, not $bytes");
        }
        self::$numbers[$name] ??= 0;
    }

    private function __clone()
    {
    }

    public function __serialize(): array
    {
        throw new \Exception("Serialization of 'Samovar\\Counter' is not allowed");
    }

    public function get(): int
    {
        return self::$numbers[$this->name];
    }

    public function set(int $value): int
    {
        $before = $this->get();
        self::$numbers[$this->name] = $value;

        return $before;
    }

    public function incr(int $by = 1): int
    {
        return self::$numbers[$this->name] = self::sum($this->get(), $by);
    }

    public function decr(int $by = 1): int
    {
        return self::$numbers[$this->name] = self::sum(self::sum($this->get(), ~$by), 1);
    }

    public function compareAndSet(int $expected, int $value): bool
    {
        $is_it = $this->get() === $expected;
        if ($is_it) {
            $this->set($value);
        }

        return $is_it;
    }

    /** Adds as 64-bit integers: after the largest integer follows the smallest. */
    private static function sum(int $a, int $b): int
    {
        $sum = $a + $b;
        if (\is_int($sum)) {
            return $sum;
        }

        // Both have the same sign. Their sum without the sign bits fits, and its sign is the
        // opposite one.
        return $a < 0 ? ($a ^ PHP_INT_MIN) + ($b ^ PHP_INT_MIN) : (($a ^ PHP_INT_MIN) + $b) ^ PHP_INT_MIN;
    }
}
