<?php

declare(strict_types=1);

namespace Tests;

use Code\Base;
use Code\Child;
use Code\GrandChild;
use Code\Overriding;
use Code\Shape;
use Code\Square;
use Code\Suit;
use PHPUnit\Framework\TestCase;
use Samovar\Mock;

final class ConstantTest extends TestCase
{
    public function testGlobalConstantIsReplacedAndRestored(): void
    {
        $service = new \Code\Service();
        self::assertSame(16, $service->rate());
        Mock::constant('Code\RATE', 5);
        self::assertSame(40, $service->rate());
        Mock::constant('\PHP_INT_SIZE', 2);
        self::assertSame([10, 2, 2], [$service->rate(), PHP_INT_SIZE, constant('PHP_INT_SIZE')]);
        Mock::restore('Code\RATE');
        self::assertSame(4, $service->rate());
        Mock::restoreAll();
        self::assertSame(16, $service->rate());
    }

    /** @dataProvider twice */
    public function testConstantIsDefinedAndRemoved(): void
    {
        self::assertFalse(defined('NEW_ONE'));
        self::assertSame('Undefined constant "Tests\NEW_ONE"', self::read());
        Mock::constant('NEW_ONE', ['a' => 1]);
        self::assertTrue(defined('NEW_ONE'));
        self::assertSame(['a' => 1], self::read());
        Mock::constant('NEW_ONE', 2);
        self::assertSame(2, self::read());
        Mock::restore('NEW_ONE');
        self::assertSame('Undefined constant "Tests\NEW_ONE"', self::read());
        Mock::constant('NEW_ONE', 3);
        self::assertSame(3, self::read());
    }

    public static function twice(): array
    {
        return [[1], [2]];
    }

    private static function read(): mixed
    {
        try {
            return NEW_ONE;
        } catch (\Error $error) {
            return $error->getMessage();
        }
    }

    public function testInheritedConstant(): void
    {
        self::assertSame(['base/base', 'base/base', 'base/overriding'], self::names());
        Mock::constant('Code\Base::NAME', 'A');
        self::assertSame(['A/A', 'A/A', 'A/overriding'], self::names());
        Mock::constant(GrandChild::class . '::NAME', 'B');
        self::assertSame('A/B', GrandChild::name());
        Mock::constant(Child::class . '::NAME', 'C');
        self::assertSame(['A/A', 'A/C', 'A/overriding'], self::names());
        self::assertSame('A/B', GrandChild::name());
        Mock::restore('Code\Base::NAME');
        self::assertSame(['base/base', 'base/C', 'base/overriding'], self::names());
        self::assertSame('base/B', GrandChild::name());
        Mock::restore(GrandChild::class . '::NAME');
        self::assertSame('base/C', GrandChild::name());
        Mock::restore(Child::class . '::NAME');
        self::assertSame('base/base', GrandChild::name());
        Mock::constant(Child::class . '::NAME', 'C');
        Mock::restoreAll();
        self::assertSame(['base/base', 'base/base', 'base/overriding'], self::names());
        self::assertSame('base/base', GrandChild::name());
    }

    public function testSeveralDoublesOfOneConstant(): void
    {
        foreach (['A', 'B', 'C'] as $name) {
            Mock::constant('Code\Base::NAME', $name);
        }
        self::assertSame(['C/C', 'C/C', 'C/overriding'], self::names());
        Mock::restoreAll();
        self::assertSame(['base/base', 'base/base', 'base/overriding'], self::names());
        Mock::constant('Code\Base::NAME', 'A');
        Mock::constant(Child::class . '::NAME', 'c');
        Mock::constant('Code\Base::NAME', 'B');
        self::assertSame(['B/B', 'B/c', 'B/overriding'], self::names());
        Mock::restore(Child::class . '::NAME');
        self::assertSame(['B/B', 'B/B', 'B/overriding'], self::names());
        Mock::restoreAll();
        self::assertSame(['base/base', 'base/base', 'base/overriding'], self::names());
    }

    public function testReflectionOutlivesTheDouble(): void
    {
        Mock::constant('Code\Base::NAME', str_repeat('A', 3));
        $constant = new \ReflectionClassConstant('Code\Base', 'NAME');
        Mock::restoreAll();
        $others = array_map(fn (int $n): string => str_repeat('x', 40 + $n), range(1, 500));
        self::assertSame('AAA', $constant->getValue());
        self::assertCount(500, $others);
    }

    private static function names(): array
    {
        return [Base::name(), Child::name(), Overriding::name()];
    }

    public function testPrivateAndProtectedConstants(): void
    {
        Mock::constant('Code\Base::OWN', 'o');
        Mock::constant('Code\Base::SECRET', 's');
        self::assertSame('o/s', Base::own());
        $this->expectException(\Error::class);
        $this->expectExceptionMessage('Cannot access private constant Code\Base::OWN');
        Base::OWN;
    }

    /** @dataProvider twice */
    public function testConstantOfClassIsDefinedAndRemoved(): void
    {
        Mock::constant(Shape::class . '::SIZE', 'large');
        self::assertSame(['large', 'large'], [Shape::size(), Square::size()]);
        Mock::constant(Square::class . '::SIZE', 'small');
        self::assertSame(['large', 'small'], [Shape::size(), Square::size()]);
        self::assertSame('small', constant('Code\Square::SIZE'));
        Mock::restore(Square::class . '::SIZE');
        self::assertSame('large', Square::size());
        Mock::restoreAll();
        $this->expectException(\Error::class);
        $this->expectExceptionMessage('Undefined constant Code\Square::SIZE');
        Square::size();
    }

    public function testClassDeclaredMeanwhileInheritsAndIsRestored(): void
    {
        Mock::constant('Code\Base::NAME', 'A');
        eval('namespace Code; class Later extends Base {}');
        self::assertSame('A/A', \Code\Later::name());
        Mock::restoreAll();
        self::assertSame('base/base', \Code\Later::name());
    }

    public function testConstantsOfPhpAndOfEnums(): void
    {
        Mock::constant('DateTimeInterface::ATOM', 'Y');
        self::assertSame(['Y', 'Y'], [\DateTimeInterface::ATOM, \DateTime::ATOM]);
        Mock::restoreAll();
        self::assertSame('Y-m-d\TH:i:sP', \DateTime::ATOM);
        Mock::constant(Suit::class . '::WILD', Suit::Hearts);
        self::assertSame(Suit::Hearts, Suit::wild());
        Mock::restoreAll();
        self::assertSame(Suit::Spades, Suit::wild());
        $this->expectException(\Error::class);
        $this->expectExceptionMessage('is a case of an enum');
        Mock::constant(Suit::class . '::Hearts', 1);
    }

    /** @dataProvider refused */
    public function testImpossibleDoublesAreExplained(string $name, string $message): void
    {
        $this->expectException(\Error::class);
        $this->expectExceptionMessage($message);
        Mock::constant($name, 1);
    }

    public static function refused(): array
    {
        return [
            ['true', '`true` is a word of the language'],
            ['__FILE__', '`__FILE__` is a word'],
            ['', '`` is a word'],
            ['Nothing::X', 'There is no class `Nothing`'],
            ['Code\Base::class', 'is no constant'],
            ['Code\Base::', 'is no constant'],
        ];
    }
}
