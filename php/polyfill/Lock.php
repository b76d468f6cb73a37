<?php

declare(strict_types=1);

namespace Samovar;

/**
 * A lock under a SAPI other than Samovar. It locks a file in the folder for temporary files, so all
 * processes of a user share it. See php/stubs/shared.php.
 */
final class Lock
{
    private const NAME_BYTES_MAX = 256;
    private const WAIT_SECONDS_MAX = 86_400.0;
    /** Interval at which a waiting request tries to acquire the lock. */
    private const LOOK_MICROSECONDS = 5_000;

    /** @var array<string, resource> files that this process holds */
    private static array $held = [];

    private bool $has_acquired = false;

    public function __construct(private string $name)
    {
        $bytes = \strlen($name);
        if ($bytes < 1 || $bytes > self::NAME_BYTES_MAX) {
            throw new \ValueError("the name of a shared object has 1 to 256 bytes, not $bytes");
        }
    }

    public function __destruct()
    {
        $this->release();
    }

    private function __clone()
    {
    }

    public function __serialize(): array
    {
        throw new \Exception("Serialization of 'Samovar\\Lock' is not allowed");
    }

    public function acquire(float $timeout = 0.0): bool
    {
        if ($this->isHeld()) {
            throw new \Error('This request already holds the lock: it would wait for itself');
        }
        $path = sys_get_temp_dir() . '/samovar-lock-' . get_current_user() . '-' . hash('sha256', $this->name);
        $file = fopen($path, 'c') ?: throw new \RuntimeException("cannot open `$path`");
        $until = microtime(true) + min(max($timeout, 0.0), self::WAIT_SECONDS_MAX);
        while (!flock($file, LOCK_EX | LOCK_NB)) {
            if (microtime(true) >= $until) {
                return false;
            }
            usleep(self::LOOK_MICROSECONDS);
        }
        self::$held[$this->name] = $file;
        $this->has_acquired = true;

        return true;
    }

    public function release(): bool
    {
        if (!$this->has_acquired || !$this->isHeld()) {
            return false;
        }
        fclose(self::$held[$this->name]);
        unset(self::$held[$this->name]);
        $this->has_acquired = false;

        return true;
    }

    public function isHeld(): bool
    {
        return isset(self::$held[$this->name]);
    }

    public function synchronized(callable $work, float $timeout = 1.0): mixed
    {
        if (!$this->acquire($timeout)) {
            throw new \RuntimeException('Timed out: another request holds the lock');
        }
        try {
            return $work();
        } finally {
            $this->release();
        }
    }
}
