<?php

declare(strict_types=1);

namespace Samovar;

/**
 * A pool under a SAPI other than Samovar. Tasks run one after another, so one object is enough,
 * except when use() is called within use(). See php/stubs/tasks.php.
 */
final class Pool
{
    private const SIZE_MAX = 1024;

    /**
     * @var list<array{mixed, int, float}> idle objects: the object, its number of uses, idle since
     */
    private array $free = [];
    /** @var list<array{mixed, int}> objects in use: the object, its number of earlier uses */
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
            'Samovar\Pool::giveBack(): Argument #1 ($object) must be an object that take() returned, '
                . 'and can be given back only once',
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

    /** Returns the object's index in $used, or null when it is not in use. */
    private function place(mixed $object): ?int
    {
        foreach ($this->used as $place => [$used]) {
            if ($used === $object) {
                return $place;
            }
        }

        return null;
    }

    /** @return array{mixed, int} an object and its number of uses */
    private function find(): array
    {
        while ([$object, $uses, $since] = array_pop($this->free)) {
            if (microtime(true) - $since <= $this->idle && $this->answers($object)) {
                return [$object, $uses];
            }
        }
        if (\count($this->used) >= $this->size) {
            throw new TimeoutException('Timed out: no object of the pool became free');
        }
        $object = ($this->make)();
        if (!\is_object($object) && !\is_resource($object)) {
            $type = get_debug_type($object);
            throw new \TypeError("The factory of a pool must return objects or resources, $type returned");
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
