<?php

declare(strict_types=1);

namespace Tests;

use PHPUnit\Framework\TestCase;
use Samovar\Mock;

use function Code\add;
use function Code\double_of;
use function Code\increment;

final class FunctionTest extends TestCase
{
    public function testFunctionOfPhpIsReplacedAndRestored(): void
    {
        $before = \time();
        Mock::function('time', fn () => 42);
        self::assertSame(42, time());
        self::assertSame(42, \time());
        self::assertSame(42, \Code\now());
        Mock::restore('time');
        self::assertGreaterThanOrEqual($before, time());
    }

    public function testDoublesOfTheTestBeforeAreGone(): void
    {
        self::assertNotSame(42, time());
        Mock::function('time', fn () => 43);
        self::assertSame(43, time());
    }

    /** @depends testDoublesOfTheTestBeforeAreGone */
    public function testDoublesEndWithTheTest(): void
    {
        self::assertNotSame(43, time());
    }

    public function testFunctionOfTheProjectIsReplaced(): void
    {
        Mock::function('Code\double_of', fn (int $n) => $n * 3);
        self::assertSame(9, double_of(3));
        self::assertSame([3, 6], array_map('Code\double_of', [1, 2]));
        self::assertSame(12, call_user_func('\code\DOUBLE_OF', 4));
        $first = double_of(...);
        self::assertSame(15, $first(5));
        Mock::restore('\Code\double_of');
        self::assertSame(6, double_of(3));
        self::assertSame(10, $first(5));
    }

    /** Functions for which the compiler usually emits instructions of their own. */
    public function testFunctionsWithInstructionsAreReplaced(): void
    {
        Mock::function('strlen', fn (string $text) => 5);
        Mock::function('is_int', fn ($value) => 'int');
        Mock::function('count', fn ($value) => -1);
        Mock::function('in_array', fn () => 'in');
        Mock::function('defined', fn () => 'defined');
        Mock::function('ord', fn () => 0);
        Mock::function('is_callable', fn () => 'callable');
        Mock::function('call_user_func', fn () => 'called');
        $results = [
            strlen('a'), is_int('x'), count([1]), in_array(1, [2], true), defined('NO'), ord('a'),
            is_callable('no'), call_user_func('no'), \Code\length('abc'),
        ];
        Mock::restoreAll();
        self::assertSame(
            [5, 'int', -1, 'in', 'defined', 0, 'callable', 'called', 5],
            $results
        );
        self::assertSame(3, \Code\length('abc'));
    }

    public function testFunctionsOfTheCallerWorkNextToDoubles(): void
    {
        Mock::function('time', fn () => 1);
        $one = 1;
        $two = 2;
        $variables = (function (int ...$all) {
            extract(['three' => 3]);
            $own = compact('three');

            return [func_get_args(), func_num_args(), $own, get_called_class(), array_keys(get_defined_vars())];
        })(5, 6);
        self::assertSame([[5, 6], 2, ['three' => 3], self::class, ['all', 'own', 'three']], $variables);
        self::assertSame(['one' => 1, 'two' => 2], compact('one', 'two'));
    }

    public function testTheFrameworkIsNotAffected(): void
    {
        Mock::function('is_string', fn () => throw new \LogicException('called'));
        Mock::function('count', fn () => 99);
        Mock::function('file_exists', fn () => false);
        Mock::function('microtime', fn () => 0.0);
        self::assertCount(2, [1, 2]);
        self::assertIsString('x');
        self::assertTrue(class_exists(Unloaded::class));
        self::assertSame(99, count([]));
    }

    public function testCallbacksOfFunctionsAreReplaced(): void
    {
        Mock::function('strtoupper', fn (string $text) => "<$text>");
        self::assertSame(['<a>', '<b>'], array_map('strtoupper', ['a', 'b']));
        self::assertSame('<x>', preg_replace_callback('/x/', fn ($m) => strtoupper($m[0]), 'x'));
        self::assertSame('<y>', call_user_func_array('strtoupper', ['y']));
        self::assertSame('<z>', (new \ReflectionFunction('strtoupper'))->invoke('z'));
        $name = 'strtoupper';
        self::assertSame('<w>', $name('w'));
    }

    public function testClosuresOfFunctionsOfPhp(): void
    {
        $length = strlen(...);
        $format = (new \DateTimeImmutable('2001-01-01'))->format(...);
        Mock::function('strlen', fn () => -1);
        Mock::method(\DateTimeImmutable::class, 'format', fn () => 'replaced');
        self::assertSame([-1, -1, 'replaced'], [$length('a'), \Closure::fromCallable('strlen')('b'), $format('Y')]);
        Mock::function('strlen', fn (string $text) => Mock::original($text . $text));
        self::assertSame([2, 4], array_map($length, ['a', 'bb']));
        Mock::restoreAll();
        self::assertSame([1, '2001'], [$length('a'), $format('Y')]);
        Mock::function('strlen', strlen(...));
        self::assertStringContainsString('doubles run inside each other', self::message(fn () => strlen('a')));
    }

    public function testAliasIsNotReplaced(): void
    {
        Mock::function('implode', fn () => 'replaced');
        self::assertSame('replaced', implode(',', [1, 2]));
        self::assertSame('1,2', join(',', [1, 2]));
    }

    public function testArgumentsReachTheDouble(): void
    {
        Mock::function('Code\add', fn (...$all) => count($all) * 100 + array_sum($all));
        self::assertSame(101, add(1));
        self::assertSame(203, add(1, 2));
        self::assertSame(515, add(1, 2, 3, 4, 5));
        Mock::function('Code\add', fn (int $a, int $b = 7) => [$a, $b][1]);
        self::assertSame(7, add(1));
        Mock::function('Code\add', fn (int $a, int $b) => $b);
        self::assertSame(3, add(b: 3, a: 1));
        self::assertSame(4, add(...['a' => 1, 'b' => 4]));
    }

    public function testDefaultsOfSkippedArgumentsAreThoseOfTheOriginal(): void
    {
        Mock::function('json_encode', fn ($value, int $flags, int $depth) => "$flags/$depth");
        self::assertSame('0/3', json_encode([], depth: 3));
    }

    public function testReferencesReachTheDouble(): void
    {
        Mock::function('Code\increment', function (int &$n): void {
            $n += 100;
        });
        $n = 1;
        increment($n);
        self::assertSame(101, $n);
        Mock::function('preg_match', function (string $pattern, string $text, &$found) {
            $found = ['replaced', $text];

            return 1;
        });
        self::assertSame(1, preg_match('/a/', 'b', $matches));
        self::assertSame(['replaced', 'b'], $matches);
        Mock::function('sort', function (array &$list) {
            $list = array_reverse($list);

            return true;
        });
        $list = [1, 3, 2];
        sort($list);
        self::assertSame([2, 3, 1], $list);
    }

    public function testValueCopiesOfReferencesDoNotWriteBack(): void
    {
        Mock::function('Code\increment', function (int $n): void {
            $n += 100;
        });
        $n = 1;
        increment($n);
        self::assertSame(1, $n);
    }

    public function testResultByReference(): void
    {
        $store = ['kept'];
        Mock::function('Code\reference', function & (array &$list) use (&$store): mixed {
            return $store[0];
        });
        $list = [1];
        $value = &\Code\reference($list);
        $value = 'changed';
        self::assertSame(['changed'], $store);
    }

    public function testGeneratorsAreReplaced(): void
    {
        Mock::function('Code\numbers', function (int $to): iterable {
            yield from [$to, $to + 1];
        });
        self::assertSame([3, 4], iterator_to_array(\Code\numbers(3)));
        Mock::function('Code\numbers', fn (int $to) => [$to]);
        self::assertSame([9], \Code\numbers(9));
        Mock::restoreAll();
        self::assertSame([1, 2], iterator_to_array(\Code\numbers(2)));
    }

    public function testRunningGeneratorIsNotReplaced(): void
    {
        $running = \Code\numbers(3);
        $seen = [$running->current()];
        Mock::function('Code\numbers', fn () => []);
        $running->next();
        $seen[] = $running->current();
        self::assertSame([1, 2], $seen);
    }

    public function testResultHasTheDeclaredType(): void
    {
        Mock::function('Code\nothing', fn () => 5);
        self::assertNull(\Code\nothing());
        Mock::function('Code\stop', fn () => 5);
        self::assertNull(\Code\stop());
        Mock::function('Code\double_of', fn () => 'text');
        $this->expectException(\TypeError::class);
        $this->expectExceptionMessage('Code\double_of(): Return value must be of type int, string returned');
        double_of(1);
    }

    public function testExceptionsOfDoublesReachTheCaller(): void
    {
        Mock::function('file_get_contents', fn () => throw new \RuntimeException('no network'));
        try {
            (new \Code\Service())->fetch('http://example.org/');
            self::fail();
        } catch (\RuntimeException $error) {
            self::assertSame('no network', $error->getMessage());
            $frames = array_column($error->getTrace(), 'function');
            self::assertSame(['Tests\{closure}', 'file_get_contents', 'fetch'], array_slice(self::named($frames), 0, 3));
            $lines = array_column($error->getTrace(), 'line', 'function');
            $body = file(__DIR__ . '/../code.php');
            self::assertStringContainsString('file_get_contents', $body[$lines['file_get_contents'] - 1]);
        }
        Mock::function('Code\double_of', fn () => throw new \RuntimeException('thrown'));
        self::assertSame('thrown', self::message(fn () => double_of(1)));
        Mock::restoreAll();
        self::assertSame(2, double_of(1));
    }

    /** Since PHP 8.4 the name of a closure contains its function. */
    private static function named(array $frames): array
    {
        return preg_replace('/^.*\{closure.*\}$/', 'Tests\{closure}', $frames);
    }

    private static function message(callable $call): string
    {
        try {
            $call();
        } catch (\Throwable $error) {
            return $error->getMessage();
        }

        return '';
    }

    public function testOriginalIsCalledWithinADouble(): void
    {
        Mock::function('strlen', fn (string $text) => Mock::original(trim($text)));
        self::assertSame(1, strlen('  a  '));
        Mock::function('Code\factorial', fn (int $n) => Mock::original($n) + 1);
        // Calls within the original reach the double again, as in SoftMocks.
        self::assertSame(3 * (2 * (1 + 1) + 1) + 1, \Code\factorial(3));
        Mock::function('Code\add', fn (...$all) => Mock::original(...$all));
        self::assertSame(11, add(1));
        self::assertSame(15, add(1, 2, 3, 4, 5));
        self::assertSame(6, add(b: 5, a: 1));
    }

    public function testOriginalIsCalledFromAnywhere(): void
    {
        Mock::function('time', fn () => 42);
        Mock::function('Code\increment', fn (int &$n) => $n = 0);
        self::assertGreaterThan(42, Mock::callOriginal('time'));
        $n = 1;
        Mock::callOriginal('Code\increment', [&$n]);
        self::assertSame(2, $n);
        self::assertSame(42, time());
        self::assertSame(6, Mock::callOriginal('Code\add', ['b' => 5, 'a' => 1]));
    }

    public function testEndlessRecursionIsAnError(): void
    {
        Mock::function('time', fn () => time());
        self::assertStringContainsString("hint: a double that calls", self::message(fn () => time()));
        Mock::function('time', fn () => 7);
        self::assertSame(7, time());
    }

    public function testDeepRecursionWorksNextToDoubles(): void
    {
        if (extension_loaded('xdebug')) {
            self::markTestSkipped('Xdebug uses the C stack for each call');
        }
        Mock::function('time', fn () => 1);
        self::assertSame(200000, \Code\depth(200000));
    }

    public function testDoubleMayRemoveItself(): void
    {
        Mock::function('Code\double_of', function (int $n): int {
            Mock::restoreAll();

            return double_of($n) + 1;
        });
        self::assertSame(7, double_of(3));
        self::assertSame(6, double_of(3));
    }

    public function testLastDoubleCounts(): void
    {
        Mock::function('time', fn () => 1);
        Mock::function('time', fn () => 2);
        self::assertSame(2, time());
        Mock::restore('time');
        self::assertGreaterThan(2, time());
    }

    public function testCallsAreRecorded(): void
    {
        Mock::function('random_int', fn (int $min, int $max) => $max);
        random_int(1, 2);
        random_int(min: 3, max: 4);
        self::assertSame([[1, 2], [3, 4]], Mock::calls('random_int'));
        self::assertSame([[1, 2], [3, 4]], Mock::calls('\Random_Int'));
        Mock::function('Code\increment', function (int &$n): void {
            $n = 9;
        });
        $n = 1;
        increment($n);
        self::assertSame([[1]], Mock::calls('Code\increment'));
    }

    public function testCallersWithStrictTypes(): void
    {
        Mock::function('strrev', fn (int $n) => $n);
        // The double is called by the engine, which converts, as callbacks are.
        self::assertSame(5, strrev('5'));
        self::assertStringContainsString('must be of type int', self::message(fn () => strrev('x')));
    }

    public function testCallableStringsAndMethodsAreDoubles(): void
    {
        Mock::function('Code\double_of', 'abs');
        self::assertSame(4, double_of(-4));
        Mock::function('Code\double_of', [$this, 'triple']);
        self::assertSame(12, double_of(4));
    }

    public function triple(int $n): int
    {
        return $n * 3;
    }

    public function testExitIsReplaced(): void
    {
        Mock::function('exit', fn (...$all) => throw new \RuntimeException(json_encode($all)));
        self::assertSame('[3]', self::message(fn () => exit(3)));
        self::assertSame('["bye"]', self::message(fn () => die('by' . 'e')));
        self::assertSame('[]', self::message(fn () => exit));
        Mock::function('exit', fn () => null);
        $code = 4;
        exit($code);
        self::assertSame([[4]], Mock::calls('exit'));
    }

    public function testFibersAndDoubles(): void
    {
        Mock::function('Code\double_of', fn (int $n) => \Fiber::suspend($n) + Mock::original($n));
        $fibers = [new \Fiber(fn () => double_of(1)), new \Fiber(fn () => double_of(2))];
        self::assertSame([1, 2], array_map(fn ($fiber) => $fiber->start(), $fibers));
        $fibers[0]->resume(10);
        $fibers[1]->resume(20);
        self::assertSame([12, 24], array_map(fn ($fiber) => $fiber->getReturn(), $fibers));
    }

    public function testManyFibersRunDoubles(): void
    {
        Mock::function('Code\double_of', fn (int $n) => \Fiber::suspend() ?? $n);
        $fibers = array_map(fn (int $n) => new \Fiber(fn () => double_of($n)), range(1, 300));
        array_map(fn ($fiber) => $fiber->start(), $fibers);
        array_map(fn ($fiber) => $fiber->resume(), $fibers);
        self::assertSame(range(1, 300), array_map(fn ($fiber) => $fiber->getReturn(), $fibers));
        Mock::function('Code\double_of', fn (int $n) => $n === 0 ? 0 : 1 + double_of($n - 1));
        $deep = new \Fiber(fn () => [double_of(250), self::message(fn () => double_of(256))]);
        $deep->start();
        self::assertSame(250, $deep->getReturn()[0]);
        self::assertStringStartsWith('256 doubles run inside each other', $deep->getReturn()[1]);
    }

    public function testTasksRunDoubles(): void
    {
        if (!function_exists('Samovar\parallel')) {
            self::markTestSkipped('PHP of its own command line has no tasks');
        }
        Mock::function('usleep', fn (int $microseconds) => Mock::original(10));
        Mock::function('gethostname', fn () => 'host');
        $sleep = function (): string {
            usleep(3_600_000_000);

            return gethostname();
        };
        self::assertSame(['host', 'host'], \Samovar\parallel([$sleep, $sleep]));
    }

    public function testWritersOfOutput(): void
    {
        $sent = [];
        Mock::function('header', function (string $line) use (&$sent): void {
            $sent[] = $line;
        });
        Mock::function('mail', fn () => true);
        Mock::function('sleep', fn (int $seconds) => 0);
        header('X: y');
        self::assertSame(['X: y'], $sent);
        self::assertTrue(mail('a@example.org', 'b', 'c'));
        self::assertSame(0, sleep(1000));
    }

    /** @dataProvider refused */
    public function testImpossibleDoublesAreExplained(string $name, callable $double, string $message): void
    {
        $this->expectException(\Error::class);
        $this->expectExceptionMessage($message);
        Mock::function($name, $double);
    }

    public static function refused(): array
    {
        $any = fn () => 1;

        return [
            ['tiem', $any, "There is no function `tiem`\nhint: "],
            ['isset', $any, "`isset` is a construct of the language, which cannot be replaced\nhint: "],
            ['echo', $any, "`echo` is a construct of the language"],
            ['compact', $any, "`compact` depends on the variables of its caller"],
            ['time', fn (&$x) => 1, "The double of `time` takes its parameter 1 by reference"],
        ];
    }

    public function testOriginalOutsideOfADoubleIsExplained(): void
    {
        self::assertStringContainsString('hint: use Samovar\Mock::callOriginal()', self::message(fn () => Mock::original()));
        self::assertStringContainsString('There is no double of `time`', self::message(fn () => Mock::calls('time')));
        $this->expectException(\TypeError::class);
        Mock::function('time', 'no such function');
    }
}

final class Unloaded
{
}
