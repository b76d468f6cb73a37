<?php

/* Code that the tests of Samovar\Mock replace. */

declare(strict_types=1);

namespace Code;

const RATE = 2;
const OTHER = RATE + 1;

function double_of(int $n): int
{
    return $n * 2;
}

function add(int $a, int $b = 10, int ...$rest): int
{
    return $a + $b + array_sum($rest);
}

function increment(int &$n): void
{
    $n++;
}

function &reference(array &$list): mixed
{
    return $list[0];
}

function numbers(int $to): iterable
{
    for ($i = 1; $i <= $to; $i++) {
        yield $i;
    }
}

function nothing(): void
{
}

function stop(): never
{
    throw new \LogicException('the original');
}

function factorial(int $n): int
{
    return $n <= 1 ? 1 : $n * factorial($n - 1);
}

function depth(int $n): int
{
    return $n === 0 ? 0 : 1 + depth($n - 1);
}

/** @deprecated */
function now(): int
{
    return time();
}

function length(string $text): int
{
    return strlen($text);
}

trait Greeting
{
    public function greet(): string
    {
        return 'hello from ' . static::class;
    }

    public static function make(): static
    {
        return new static();
    }
}

class Base
{
    public const NAME = 'base';
    protected const SECRET = 'secret';
    private const OWN = 'own';
    public const DERIVED = self::NAME . '!';

    private int $value = 7;
    public array $log = [];

    public function __construct(int $value = 7)
    {
        $this->value = $value;
    }

    public function value(): int
    {
        return $this->value;
    }

    private function hidden(int $n): int
    {
        return $n + $this->value;
    }

    public function reveal(int $n): int
    {
        return $this->hidden($n);
    }

    final public function fixed(): string
    {
        return 'fixed';
    }

    public static function kind(): string
    {
        return 'base of ' . static::class;
    }

    public function getter(): int
    {
        return 10;
    }

    public function __get(string $name): mixed
    {
        return "no $name";
    }

    public function __call(string $name, array $arguments): mixed
    {
        return "$name called";
    }

    public static function __callStatic(string $name, array $arguments): mixed
    {
        return "static $name called";
    }

    public function __toString(): string
    {
        return 'a base';
    }

    public function __invoke(int $n): int
    {
        return $n;
    }

    public function items(): \Generator
    {
        yield 'a';
        yield 'b';
    }

    public static function name(): string
    {
        return self::NAME . '/' . static::NAME;
    }

    public static function own(): string
    {
        return self::OWN . '/' . self::SECRET;
    }

    public function counted(): int
    {
        static $n = 0;
        return ++$n;
    }

    public function chained(?self $next = null): ?static
    {
        return null;
    }
}

class Child extends Base
{
}

class GrandChild extends Child
{
    public function getter(): int
    {
        return parent::getter() * 2;
    }
}

class Sibling extends Base
{
}

class Overriding extends Base
{
    public const NAME = 'overriding';

    public function getter(): int
    {
        return 20;
    }
}

abstract class Shape
{
    abstract public function area(): int;

    public static function size(): string
    {
        return static::SIZE;
    }
}

class Square extends Shape
{
    public function area(): int
    {
        return 4;
    }
}

class Greeter
{
    use Greeting;
}

class OtherGreeter
{
    use Greeting {
        greet as welcome;
    }
}

final class Point
{
    public function __construct(public readonly int $x = 0, public readonly int $y = 0)
    {
    }
}

final class Closed
{
    private function __construct(public readonly string $word)
    {
    }
}

enum Suit: string
{
    case Hearts = 'h';
    case Spades = 's';

    public const WILD = self::Spades;

    public static function wild(): self
    {
        return self::WILD;
    }

    public function label(): string
    {
        return ucfirst(strtolower($this->name));
    }
}

final class Service
{
    public function fetch(string $address): string
    {
        $text = file_get_contents($address);

        return $text === false ? 'none' : $text;
    }

    public function point(int $x): object
    {
        return new Point($x, y: 5);
    }

    public function rate(): int
    {
        return RATE * \PHP_INT_SIZE;
    }
}
