<?php

declare(strict_types=1);

namespace Samovar;

/**
 * A pool under a SAPI that is not Samovar: tasks run one after another, so one object is enough unless use() is called
 * within use(). php/stubs/samovar.php says more.
 */
final class Pool
{
    private const SIZE_MAX = 1024;

    /** @var list<array{mixed, int, float}> idle ones: the object, its uses, since when */
    private array $free = [];
    private int $used = 0;
    private int $made = 0;
    /** @var callable(): mixed */
    private $make;
    /** @var (callable(mixed): mixed)|null */
    private $check;

    public function __construct(
        callable $make,
        private int $size = 8,
        private int $maxUses = 0,
        private float $idle = 60,
        ?callable $check = null,
        float $wait = 5,
    ) {
        if ($size < 1 || $size > self::SIZE_MAX) {
            $between = 'must be between 1 and ' . self::SIZE_MAX;
            throw new \ValueError("Samovar\Pool::__construct(): Argument #2 (\$size) $between");
        }
        foreach ([3 => ['maxUses', $maxUses], 4 => ['idle', $idle], 6 => ['wait', $wait]] as $i => [$name, $number]) {
            if (!($number >= 0)) {
                $least = 'must be greater than or equal to 0';
                throw new \ValueError("Samovar\Pool::__construct(): Argument #$i (\$$name) $least");
            }
        }
        $this->make = $make;
        $this->check = $check;
    }

    public function use(callable $work): mixed
    {
        [$object, $uses] = $this->take();
        $this->used++;
        try {
            $result = $work($object);
            $uses++;
            if ($this->maxUses === 0 || $uses < $this->maxUses) {
                $this->free[] = [$object, $uses, microtime(true)];
            }

            return $result;
        } finally {
            $this->used--;
        }
    }

    /** @return array{size: int, idle: int, used: int, made: int} */
    public function stats(): array
    {
        $idle = \count($this->free);

        return ['size' => $this->size, 'idle' => $idle, 'used' => $this->used, 'made' => $this->made];
    }

    /** @return array{mixed, int} an object and its uses */
    private function take(): array
    {
        while ([$object, $uses, $since] = array_pop($this->free)) {
            if (microtime(true) - $since <= $this->idle && $this->answers($object)) {
                return [$object, $uses];
            }
        }
        if ($this->used >= $this->size) {
            throw new TimeoutException('No object of the pool has become free in time');
        }
        $object = ($this->make)();
        if (!\is_object($object) && !\is_resource($object)) {
            $type = get_debug_type($object);
            throw new \TypeError("What a pool makes must be objects or resources, $type returned");
        }
        $this->made++;

        return [$object, 0];
    }

    private function answers(mixed $object): bool
    {
        if ($this->check === null) {
            return true;
        }
        try {
            return ($this->check)($object) !== false;
        } catch (\Throwable) {
            return false;
        }
    }
}
