<?php

declare(strict_types=1);

namespace Tests;

use Code\Base;
use Code\Child;
use Code\Closed;
use Code\Greeter;
use Code\Point;
use PHPUnit\Framework\TestCase;
use Samovar\Mock;

final class NewTest extends TestCase
{
    public function testNewIsReplacedAndRestored(): void
    {
        Mock::new(Point::class, fn (...$all) => (object) $all);
        $made = (new \Code\Service())->point(3);
        self::assertEquals((object) [0 => 3, 'y' => 5], $made);
        self::assertSame([[3, 'y' => 5]], Mock::calls('new Code\Point'));
        Mock::restore('new Code\Point');
        self::assertInstanceOf(Point::class, (new \Code\Service())->point(3));
    }

    public function testEveryFormOfNewIsReplaced(): void
    {
        $double = new \stdClass();
        Mock::new(Greeter::class, fn () => $double);
        $name = Greeter::class;
        class_alias(Greeter::class, 'Tests\Alias');
        self::assertSame([$double, $double, $double], [new Greeter(), new $name(), new Alias()]);
        self::assertSame($double, new ($name . ''));
        Mock::new(Base::class, fn () => $double);
        self::assertInstanceOf(Child::class, new Child());
    }

    public function testStaticNewIsReplaced(): void
    {
        $double = (new \ReflectionClass(Greeter::class))->newInstanceWithoutConstructor();
        Mock::new(Greeter::class, fn () => $double);
        self::assertSame($double, Greeter::make());
    }

    public function testOriginalMakesTheObject(): void
    {
        Mock::new(Point::class, fn (int $x, int $y = 1) => Mock::original($x * 10, $y));
        self::assertEquals([50, 1], array_values((array) new Point(5)));
        self::assertEquals([50, 2], array_values((array) new Point(y: 2, x: 5)));
        Mock::new(Closed::class, fn () => Mock::original('open'));
        self::assertSame('open', (new Closed())->word);
    }

    public function testExceptionsLeaveNothing(): void
    {
        Mock::new(Point::class, fn () => throw new \RuntimeException('from the double'));
        $messages = [];
        foreach ([fn () => new Point(), fn () => new Point(throw new \Exception('from an argument'))] as $make) {
            try {
                $make();
            } catch (\Exception $error) {
                $messages[] = $error->getMessage();
            }
        }
        self::assertSame(['from the double', 'from an argument'], $messages);
    }

    public function testNewInArgumentsOfNew(): void
    {
        Mock::new(Point::class, fn ($x = 0, $y = 0) => new \ArrayObject([$x, $y]));
        self::assertSame(
            '{"0":{"0":1,"1":0},"1":{"0":2,"1":3}}',
            json_encode(new Point(new Point(1), new Point(2, 3)))
        );
    }

    public function testNewInGeneratorsAndFibers(): void
    {
        Mock::new(Point::class, fn ($x) => new \ArrayObject([$x]));
        $generator = (fn () => yield new Point(yield 1))();
        $generator->current();
        self::assertSame(['x'], $generator->send('x')->getArrayCopy());
        $fiber = new \Fiber(fn () => new Point(\Fiber::suspend(1)));
        $fiber->start();
        $fiber->resume('y');
        self::assertSame(['y'], $fiber->getReturn()->getArrayCopy());
    }

    public function testDoubleReturnsAnObject(): void
    {
        Mock::new(Point::class, fn () => 5);
        $this->expectException(\TypeError::class);
        $this->expectExceptionMessage("The double of `new Code\Point` must return an object, int returned\nhint: ");
        new Point();
    }

    public function testDoubleThatIsRemovedByAnArgument(): void
    {
        Mock::new(Point::class, fn () => new \stdClass());
        $this->expectException(\Error::class);
        $this->expectExceptionMessage('was removed while its arguments were computed');
        new Point(Mock::restoreAll() ?? 1);
    }

    public function testUnknownClassIsExplained(): void
    {
        $this->expectException(\Error::class);
        $this->expectExceptionMessage("There is no class `Nothing`\nhint: ");
        Mock::new('Nothing', fn () => 1);
    }
}
