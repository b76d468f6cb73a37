<?php

declare(strict_types=1);

namespace Tests;

use Code\Base;
use Code\Child;
use Code\GrandChild;
use Code\Greeter;
use Code\Greeting;
use Code\OtherGreeter;
use Code\Overriding;
use Code\Sibling;
use Code\Suit;
use PHPUnit\Framework\TestCase;
use Samovar\Mock;

final class MethodTest extends TestCase
{
    public function testMethodIsReplacedAndRestored(): void
    {
        $base = new Base(3);
        Mock::method(Base::class, 'value', fn () => 43);
        self::assertSame(43, $base->value());
        self::assertSame(43, (new Child())->value());
        self::assertSame(43, [$base, 'VALUE']());
        Mock::restore('Code\Base::value');
        self::assertSame(3, $base->value());
    }

    public function testClosureRunsInTheScopeOfTheMethod(): void
    {
        Mock::method(Base::class, 'value', function (): int {
            return $this->value * 100 + $this->hidden(1) + strlen(self::OWN) + strlen(static::class);
        });
        self::assertSame(300 + 4 + 3 + strlen(Child::class), (new Child(3))->value());
    }

    public function testPrivateStaticAndFinalMethodsAreReplaced(): void
    {
        Mock::method(Base::class, 'hidden', fn (int $n) => $n * 1000);
        self::assertSame(2000, (new Child())->reveal(2));
        Mock::method(Base::class, 'fixed', fn () => 'replaced');
        self::assertSame('replaced', (new Child())->fixed());
        Mock::method(Base::class, 'kind', fn () => 'kind of ' . static::class);
        self::assertSame('kind of Code\Child', Child::kind());
        self::assertSame('kind of Code\Base', call_user_func([Base::class, 'kind']));
        self::assertSame('kind of Code\Base', call_user_func('Code\Base::kind'));
        self::assertSame('kind of Code\Child', Child::kind(...)());
        self::assertStringStartsWith('kind of ', (new \ReflectionMethod(Base::class, 'kind'))->invoke(null));
    }

    public function testInheritedMethodIsReplacedForTheNamedClassOnly(): void
    {
        Mock::method(Child::class, 'getter', fn () => 20);
        self::assertSame(20, (new Child())->getter());
        self::assertSame(40, (new GrandChild())->getter());
        self::assertSame(10, (new Base())->getter());
        self::assertSame(10, (new Sibling())->getter());
    }

    public function testOverriddenMethodIsNotReplaced(): void
    {
        Mock::method(Base::class, 'getter', fn () => 30);
        self::assertSame(20, (new Overriding())->getter());
        self::assertSame(30, (new Base())->getter());
        self::assertSame(60, (new GrandChild())->getter());
    }

    /** @dataProvider orders */
    public function testNearestClassWins(array $order): void
    {
        $doubles = ['base' => [Base::class, 1], 'child' => [Child::class, 2]];
        foreach ($order as $name) {
            [$class, $value] = $doubles[$name];
            Mock::method($class, 'getter', fn () => $value);
        }
        self::assertSame([1, 2, 4, 1], [
            (new Base())->getter(), (new Child())->getter(), (new GrandChild())->getter(),
            (new Sibling())->getter(),
        ]);
    }

    public static function orders(): array
    {
        return [[['base', 'child']], [['child', 'base']]];
    }

    public function testOriginalOfParentAndChild(): void
    {
        Mock::method(GrandChild::class, 'getter', fn () => Mock::original() + 1);
        Mock::method(Base::class, 'getter', fn () => 100);
        self::assertSame(201, (new GrandChild())->getter());
        self::assertSame(20, Mock::callOriginal([new Overriding(), 'getter']));
        self::assertSame(10, Mock::callOriginal([new Base(), 'getter']));
        self::assertSame('base of Code\Child', Mock::callOriginal('Code\Child::kind'));
        self::assertSame(9, Mock::callOriginal([new Base(4), 'hidden'], [5]));
    }

    public function testMagicMethodsAreReplaced(): void
    {
        $base = new Base();
        Mock::method(Base::class, '__get', fn (string $name) => "replaced $name");
        self::assertSame('replaced colour', $base->colour);
        Mock::method(Base::class, '__call', fn (string $name, array $arguments) => [$name, $arguments]);
        self::assertSame(['go', [1]], $base->go(1));
        Mock::method(Base::class, '__callStatic', fn (string $name, array $arguments) => [$name, $arguments]);
        self::assertSame(['run', [2]], Base::run(2));
        Mock::method(Base::class, '__toString', fn () => 'text');
        self::assertSame('text', "$base");
        Mock::method(Base::class, '__invoke', fn (int $n) => $n + 1);
        self::assertSame(6, $base(5));
        self::assertSame([2], array_map($base, [1]));
        Mock::restoreAll();
        self::assertSame('no colour', $base->colour);
        self::assertSame('go called', $base->go());
    }

    public function testConstructorIsReplaced(): void
    {
        Mock::method(Base::class, '__construct', function (...$all): void {
            $this->log = $all;
        });
        $base = new Base(5, 6, 7);
        self::assertSame([[5, 6, 7], 7], [$base->log, $base->value()]);
    }

    public function testGeneratorMethodIsReplaced(): void
    {
        Mock::method(Base::class, 'items', function (): \Generator {
            yield $this->value;
        });
        self::assertSame([7], iterator_to_array((new Base())->items()));
        self::assertSame(['a', 'b'], iterator_to_array(Mock::callOriginal([new Base(), 'items'])));
    }

    public function testMethodOfTraitIsReplacedInItsClasses(): void
    {
        Mock::method(Greeter::class, 'greet', fn () => 'replaced');
        self::assertSame('replaced', (new Greeter())->greet());
        self::assertSame('hello from Code\OtherGreeter', (new OtherGreeter())->greet());
        Mock::method(OtherGreeter::class, 'greet', fn () => 'greeted');
        self::assertSame('greeted', (new OtherGreeter())->greet());
        self::assertSame('hello from Code\OtherGreeter', (new OtherGreeter())->welcome());
        Mock::restoreAll();
        Mock::method(Greeting::class, 'greet', fn () => static::class . self::class);
        self::assertSame('Code\GreeterCode\Greeter', (new Greeter())->greet());
        self::assertSame('Code\OtherGreeterCode\OtherGreeter', (new OtherGreeter())->greet());
        self::assertSame('Code\OtherGreeterCode\OtherGreeter', (new OtherGreeter())->welcome());
    }

    public function testMethodOfPhpIsReplaced(): void
    {
        Mock::method(\DateTimeImmutable::class, 'format', fn (string $format) => "<$format>");
        self::assertSame('<Y>', (new \DateTimeImmutable())->format('Y'));
        self::assertSame(date('Y'), (new \DateTime())->format('Y'));
        Mock::method(\ArrayObject::class, 'count', fn () => -1);
        $child = new class ([1, 2]) extends \ArrayObject {
        };
        self::assertSame(-1, $child->count());
        Mock::restoreAll();
        self::assertSame(2, $child->count());
    }

    public function testMethodsOfEnumsAndAnonymousClasses(): void
    {
        Mock::method(Suit::class, 'label', fn () => "suit $this->value");
        self::assertSame('suit h', Suit::Hearts->label());
        Mock::method(Suit::class, 'tryFrom', fn (int|string $value) => self::Spades);
        self::assertSame(Suit::Spades, Suit::tryFrom('x'));
        $object = new class () {
            public function go(): int
            {
                return 1;
            }
        };
        Mock::method(get_class($object), 'go', fn () => 2);
        self::assertSame(2, $object->go());
    }

    public function testObjectsOfTheFrameworkHaveDoubles(): void
    {
        $mock = $this->createMock(Base::class);
        $mock->expects(self::exactly(2))->method('value')->willReturn(5);
        self::assertSame(5, $mock->value());
        Mock::function('time', fn () => $mock->value());
        self::assertSame(5, \Code\now());
        Mock::method(get_class($mock), 'value', fn () => 6);
        self::assertSame(6, $mock->value());
    }

    public function testMethodsOfConnectionsAreReplaced(): void
    {
        if (!class_exists(\PDO::class)) {
            self::markTestSkipped('PDO is not installed');
        }
        Mock::method(\PDO::class, '__construct', function (string $source): void {
        });
        Mock::method(\PDO::class, 'query', fn (string $query) => "result of $query");
        self::assertSame('result of SELECT 1', (new \PDO('none:'))->query('SELECT 1'));
        self::assertSame([['none:']], Mock::calls('PDO::__construct'));
    }

    public function testStaticVariablesStay(): void
    {
        $base = new Base();
        self::assertSame(1, $base->counted());
        Mock::method(Base::class, 'counted', function (): int {
            static $n = 100;

            return ++$n;
        });
        self::assertSame([101, 102], [$base->counted(), $base->counted()]);
        Mock::restoreAll();
        self::assertSame(2, $base->counted());
    }

    public function testResultHasTheDeclaredType(): void
    {
        Mock::method(Base::class, 'chained', fn () => $this);
        $child = new Child();
        self::assertSame($child, $child->chained());
        Mock::method(Base::class, 'chained', fn () => new Sibling());
        $this->expectException(\TypeError::class);
        $child->chained();
    }

    public function testCallsAreRecorded(): void
    {
        Mock::method(Base::class, 'hidden', fn (int $n) => 1);
        (new Base())->reveal(5);
        (new Child())->reveal(6);
        self::assertSame([[5], [6]], Mock::calls('Code\Base::hidden'));
    }

    public function testCallbacksAreMethods(): void
    {
        Mock::method(Base::class, 'value', [$this, 'value']);
        self::assertSame(8, (new Base())->value());
        Mock::method(Base::class, 'kind', static fn () => 'static');
        self::assertSame('static', Base::kind());
        Mock::method(Base::class, 'value', static fn () => 9);
        self::assertSame(9, (new Base())->value());
    }

    public function value(): int
    {
        return 8;
    }

    public function testStaticMethodHasNoObject(): void
    {
        $this->expectException(\Error::class);
        $this->expectExceptionMessage('The double of the static method `Code\Base::kind` uses $this');
        Mock::method(Base::class, 'kind', fn () => $this->getName());
    }

    /** @dataProvider refused */
    public function testImpossibleDoublesAreExplained(string $class, string $method, \Closure $double, string $message): void
    {
        $this->expectException(\Error::class);
        $this->expectExceptionMessage($message);
        Mock::method($class, $method, $double);
    }

    public static function refused(): array
    {
        $any = static fn () => 1;

        return [
            ['Code\Nothing', 'x', $any, "There is no class `Code\Nothing`\nhint: "],
            [Greeter::class, 'missing', $any, "The class `Code\Greeter` has no method `missing`\nhint: check"],
            [Base::class, 'missing', $any, "it is served by __call()"],
            [\Code\Shape::class, 'area', $any, "The method `Code\Shape::area` is abstract\nhint: "],
            [\Countable::class, 'count', $any, "is abstract"],
            [Mock::class, 'calls', $any, "cannot be replaced"],
        ];
    }
}
