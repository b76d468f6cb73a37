<?php

declare(strict_types=1);

namespace Pristine;

/** The result of the boot: one object of each kind that keeps state. */
final class Container
{
    public static int $counter = 0;
    /** @var array<string, mixed> */
    public static array $registry = [];

    public array $list = [1, 2, 3];
    public ?\Closure $closure = null;
    public \Generator $numbers;
    public \ArrayIterator $iterator;
    public \SplObjectStorage $storage;
    public \SplFixedArray $fixed;
    public \SplPriorityQueue $queue;
    public \WeakMap $weak;
    public object $key;
    public \DateTime $date;
    public \DOMDocument $document;
    public \PDO $database;
    public \NumberFormatter $formatter;
    public \Fiber $fiber;
    /** @var resource */
    public $memory;
    /** @var \CurlHandle */
    public $curl;

    /** Counts its own calls. */
    public static function calls(): int
    {
        static $calls = 0;

        return ++$calls;
    }
}

trait Brews
{
    public static int $brewed = 0;
}

class Pot
{
    use Brews;

    public static ?Pot $last = null;

    public function __construct(public string $kind = 'green')
    {
        self::$last = $this;
        self::$brewed++;
    }
}

enum Kind: string
{
    case Green = 'green';
    case Black = 'black';

    public const BEST = self::Green;
}

/** Files named tea://NAME with the content NAME. */
final class TeaStream
{
    public static int $opened = 0;
    /** @var resource|null */
    public $context;
    private string $rest = '';

    public function stream_open(string $path): bool
    {
        self::$opened++;
        $this->rest = substr($path, strlen('tea://'));

        return true;
    }

    public function stream_read(int $count): string
    {
        $part = substr($this->rest, 0, $count);
        $this->rest = substr($this->rest, strlen($part));

        return $part;
    }

    public function stream_eof(): bool
    {
        return $this->rest === '';
    }

    public function stream_stat(): array
    {
        return [];
    }
}
