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
    /** @var list<array{mixed, int}> used ones: the object, its uses before */
    private array $used = [];
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
        $object = $this->take();
        $isSound = false;
        try {
            $result = $work($object);
            $isSound = true;

            return $result;
        } finally {
            if ($this->place($object) !== null) {
                $this->giveBack($object, $isSound);
            }
        }
    }

    public function take(): mixed
    {
        [$object, $uses] = $this->find();
        $this->used[] = [$object, $uses];

        return $object;
    }

    public function giveBack(mixed $object, bool $sound = true): void
    {
        $place = $this->place($object) ?? throw new \ValueError(
            'Samovar\Pool::giveBack(): Argument #1 ($object) must be what take() has returned, and is given back once',
        );
        $uses = $this->used[$place][1] + 1;
        array_splice($this->used, $place, 1);
        if ($sound && ($this->maxUses === 0 || $uses < $this->maxUses)) {
            $this->free[] = [$object, $uses, microtime(true)];
        }
    }

    /** @return array{size: int, idle: int, used: int, made: int} */
    public function stats(): array
    {
        $idle = \count($this->free);

        return ['size' => $this->size, 'idle' => $idle, 'used' => \count($this->used), 'made' => $this->made];
    }

    /** Where among the used ones it is; null: it is none of them. */
    private function place(mixed $object): ?int
    {
        foreach ($this->used as $place => [$used]) {
            if ($used === $object) {
                return $place;
            }
        }

        return null;
    }

    /** @return array{mixed, int} an object and its uses */
    private function find(): array
    {
        while ([$object, $uses, $since] = array_pop($this->free)) {
            if (microtime(true) - $since <= $this->idle && $this->answers($object)) {
                return [$object, $uses];
            }
        }
        if (\count($this->used) >= $this->size) {
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
