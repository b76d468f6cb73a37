<?php

declare(strict_types=1);

namespace Samovar;

/**
 * A cache under a SAPI other than Samovar. It belongs to this process only. See
 * php/stubs/shared.php.
 */
final class Cache
{
    private const NAME_BYTES_MAX = 256;
    private const KEY_BYTES_MAX = 1024;
    private const BYTES_MIN = 64 << 10;
    private const BYTES_MAX = 8 << 30;
    /** A value with its key uses at most 1/VALUE_SHARE of the cache. */
    private const VALUE_SHARE = 32;

    /** @var array<string, array{bytes: int, used: int, values: array<string, array{string,
     * float}>}> */
    private static array $caches = [];

    public function __construct(private string $name, private int $bytes = 4194304)
    {
        self::within(\strlen($name), 1, self::NAME_BYTES_MAX, 'the name of a shared object');
        self::within($bytes, self::BYTES_MIN, self::BYTES_MAX, 'a cache');
        self::$caches[$name] ??= ['bytes' => $bytes, 'used' => 0, 'values' => []];
        $found = self::$caches[$name]['bytes'];
        if ($found !== $bytes) {
            throw new \Error("the cache `$name` exists as `bytes=$found`, and cannot be `bytes=$bytes` too");
        }
    }

    private function __clone()
    {
    }

    public function __serialize(): array
    {
        throw new \Exception("Serialization of 'Samovar\\Cache' is not allowed");
    }

    public function get(string $key, mixed $default = null): mixed
    {
        return $this->has($key) ? unserialize(self::$caches[$this->name]['values'][$key][0]) : $default;
    }

    public function set(string $key, mixed $value, ?float $ttl = null): bool
    {
        $this->delete($key);
        if ($ttl !== null && !($ttl > 0)) {
            return true;
        }
        $text = serialize($value);
        $size = \strlen($key) + \strlen($text);
        if ($size > $this->bytes / self::VALUE_SHARE) {
            return false;
        }
        $cache = &self::$caches[$this->name];
        while ($cache['used'] + $size > $this->bytes) {
            $this->delete((string) array_key_first($cache['values']));
        }
        $cache['values'][$key] = [$text, $ttl === null ? INF : self::now() + $ttl];
        $cache['used'] += $size;

        return true;
    }

    public function add(string $key, mixed $value, ?float $ttl = null): bool
    {
        self::checkTime($ttl, 'add', 3);

        return !$this->has($key) && $this->set($key, $value, $ttl);
    }

    public function replace(string $key, int|string $expected, int|string $value, ?float $ttl = null): bool
    {
        self::checkTime($ttl, 'replace', 4);
        if (\is_int($expected) !== \is_int($value)) {
            throw new \TypeError('Samovar\Cache::replace(): $expected and $value must be both strings or both int');
        }

        return $this->has($key) && $this->get($key) === $expected && $this->set($key, $value, $ttl);
    }

    public function has(string $key): bool
    {
        self::within(\strlen($key), 1, self::KEY_BYTES_MAX, 'a key of a cache');

        return (self::$caches[$this->name]['values'][$key][1] ?? 0.0) > self::now();
    }

    public function delete(string $key): bool
    {
        $was_there = $this->has($key);
        if (isset(self::$caches[$this->name]['values'][$key])) {
            self::$caches[$this->name]['used'] -=
                \strlen($key) + \strlen(self::$caches[$this->name]['values'][$key][0]);
        }
        unset(self::$caches[$this->name]['values'][$key]);

        return $was_there;
    }

    public function clear(): void
    {
        self::$caches[$this->name] = ['bytes' => $this->bytes, 'used' => 0, 'values' => []];
    }

    public function increment(string $key, int $by = 1, ?float $ttl = null): int
    {
        self::checkTime($ttl, 'increment', 3);
        $before = $this->get($key, 0);
        if (!\is_int($before) || !\is_int($before + $by)) {
            throw new \TypeError("The value of `$key` is not an int, or the sum would not be one");
        }
        $until = self::$caches[$this->name]['values'][$key][1] ?? null;
        $this->set($key, $before + $by, $this->has($key) && $until !== INF ? $until - self::now() : $ttl);

        return $before + $by;
    }

    public function remember(string $key, ?float $ttl, callable $make, float $stale = 0.0): mixed
    {
        if ($this->has($key)) {
            return $this->get($key);
        }
        $value = $make();
        $this->set($key, $value, $ttl);

        return $value;
    }

    private static function within(int $number, int $min, int $max, string $subject): void
    {
        if ($number < $min || $number > $max) {
            throw new \ValueError("$subject has $min to $max bytes, not $number");
        }
    }

    private static function checkTime(?float $ttl, string $method, int $argument): void
    {
        if ($ttl !== null && !($ttl > 0)) {
            throw new \ValueError("Samovar\\Cache::$method(): Argument #$argument (\$ttl) must be greater than 0");
        }
    }

    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}
