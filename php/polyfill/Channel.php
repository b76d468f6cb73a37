<?php

declare(strict_types=1);

namespace Samovar;

/**
 * A channel under a SAPI other than Samovar. Tasks run one after another, so the channel buffers
 * all values until they are received. See php/stubs/tasks.php.
 */
final class Channel
{
    private const CAPACITY_MAX = 1_000_000;

    /** @var list<mixed> */
    private array $values = [];
    private bool $is_closed = false;

    public function __construct(int $capacity = 0)
    {
        if ($capacity < 0 || $capacity > self::CAPACITY_MAX) {
            $between = 'must be between 0 and ' . self::CAPACITY_MAX;
            throw new \ValueError("Samovar\Channel::__construct(): Argument #1 (\$capacity) $between");
        }
    }

    public function send(mixed $value, ?float $timeout = null): void
    {
        if ($value === null) {
            $why = 'cannot be null: receive() returns null for a closed channel';
            throw new \ValueError("Samovar\Channel::send(): Argument #1 (\$value) $why");
        }
        if ($this->is_closed) {
            throw new \Error('The channel is closed: nothing can be sent');
        }
        $this->values[] = $value;
    }

    public function receive(?float $timeout = null): mixed
    {
        if ($this->values === [] && !$this->is_closed) {
            throw new \Error('All tasks wait for each other: a deadlock');
        }

        return array_shift($this->values);
    }

    public function close(): void
    {
        $this->is_closed = true;
    }
}
