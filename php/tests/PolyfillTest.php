<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Samovar\Request;
use Samovar\Response;
use Samovar\Runtime\Polyfill;

final class PolyfillTest extends TestCase
{
    public function testServeOnTheCommandLineSaysWhatToDo(): void
    {
        $this->expectException(\Error::class);
        $this->expectExceptionMessage('hint: run samovar serve');
        Polyfill::serve(static fn () => 'never', 0);
    }

    public function testDoublesExistOnlyInTestsOfTheServer(): void
    {
        $this->expectException(\LogicException::class);
        $this->expectExceptionMessage("function() works only in tests\nhint: run them with `samovar test --mocks`");
        require_once __DIR__ . '/../polyfill/Mock.php';
        \Samovar\Mock::function('time', static fn () => 1);
    }

    public function testNegativeRollbackIsRefused(): void
    {
        $this->expectException(\ValueError::class);
        Polyfill::serve(static fn () => 'never', -1);
    }

    public function testServeCannotBeNested(): void
    {
        $this->expectExceptionMessage('within a handler');
        Polyfill::answer(static fn () => Polyfill::serve(static fn () => 'never', 0), Request::of());
    }

    /** Runs under `php FILE`, where no other code defines the functions. */
    public function testFunctionsAreThereAndDoNothing(): void
    {
        $code = 'require $argv[1]; Samovar\warmup(fn () => print "warm"); Samovar\checkpoint(); echo "below";';
        exec(implode(' ', array_map(escapeshellarg(...), [
            PHP_BINARY, '-r', $code, \dirname(__DIR__) . '/autoload.php',
        ])), $lines);

        self::assertSame(['below'], $lines);
    }

    /**
     * Code with timers also runs under other SAPIs. Invalid arguments are rejected as under
     * Samovar.
     */
    public function testTimersAreThereAndMeasureNothing(): void
    {
        $code = <<<'PHP'
            require $argv[1];
            Samovar\route('shop');
            $timer = Samovar\timer(['group' => 'render', 'n' => 1, 'none' => null]);
            echo get_debug_type($timer->start()->add(0.5, 3)->add(0.0)->stop()->stop()), ' ';
            foreach ([
                fn () => Samovar\timer([]),
                fn () => Samovar\timer(['render']),
                fn () => Samovar\timer(['group' => []]),
                fn () => $timer->add(-1.0),
                fn () => $timer->add(NAN),
                fn () => $timer->add(1.0, -1),
                fn () => clone $timer,
                fn () => new Samovar\Timer(),
            ] as $wrong) {
                try {
                    $wrong();
                    echo 'nothing ';
                } catch (Throwable $e) {
                    echo get_debug_type($e), ' ';
                }
            }
            PHP;
        exec(implode(' ', array_map(escapeshellarg(...), [
            PHP_BINARY, '-r', $code, \dirname(__DIR__) . '/autoload.php',
        ])), $lines);

        self::assertSame(
            ['Samovar\Timer ValueError ValueError TypeError ValueError ValueError ValueError Error Error'],
            $lines,
        );
    }

    /** The code below the checkpoint relies on $resume under every SAPI. */
    public function testCheckpointCallsWhatResumes(): void
    {
        $code = 'require $argv[1]; Samovar\checkpoint(static function () { echo "resumed "; return false; });'
            . ' echo "below";';
        exec(implode(' ', array_map(escapeshellarg(...), [
            PHP_BINARY, '-r', $code, \dirname(__DIR__) . '/autoload.php',
        ])), $lines);

        self::assertSame(['resumed below'], $lines);
    }

    /** @dataProvider answers */
    #[DataProvider('answers')]
    public function testAnswers(callable $handler, string $printed): void
    {
        $this->expectOutputString($printed);
        Polyfill::answer($handler, Request::of(['REQUEST_URI' => '/tea?hot=1']));
    }

    /** @return array<string, array{callable, string}> */
    public static function answers(): array
    {
        return [
            'string' => [static fn () => 'text', 'text'],
            'nothing' => [static function (): void {
                echo 'printed';
            }, 'printed'],
            'request' => [static fn (Request $request) => $request->path(), '/tea'],
            'response' => [static fn () => new Response(['a', 'b']), 'ab'],
            'pieces' => [static fn () => new Response(new \ArrayIterator(['c', 'd'])), 'cd'],
            'stream' => [static fn () => new Response(fopen('data:text/plain,ef', 'r')), 'ef'],
        ];
    }

    public function testOtherAnswersAreRefused(): void
    {
        $this->expectException(\TypeError::class);
        $this->expectExceptionMessage('must return string, Samovar\Response or null, int returned');
        Polyfill::answer(static fn () => 1, Request::of());
    }

    public function testResponseChecksWhatItIsGiven(): void
    {
        self::assertSame(404, (new Response('', 404))->status());
        foreach ([199, 600] as $status) {
            try {
                new Response('', $status);
                self::fail("$status was accepted");
            } catch (\ValueError) {
                // Expected.
            }
        }
        $this->expectException(\TypeError::class);
        new Response(1);
    }

    /**
     * @dataProvider requests
     *
     * @param array<string, string> $server
     */
    #[DataProvider('requests')]
    public function testRequest(array $server, string $method, mixed $expected): void
    {
        self::assertSame($expected, Request::of($server)->$method());
    }

    /** @return array<string, array{array<string, string>, string, mixed}> */
    public static function requests(): array
    {
        return [
            'path' => [['REQUEST_URI' => '/a%20b?c'], 'path', '/a%20b'],
            'path of a whole URI' => [['REQUEST_URI' => 'http://h/a?c'], 'path', '/a'],
            'query string' => [['REQUEST_URI' => '/a?b=?&c'], 'queryString', 'b=?&c'],
            'host' => [['HTTP_HOST' => 'h:81', 'SERVER_NAME' => 's'], 'host', 'h'],
            'host of IPv6' => [['HTTP_HOST' => '[::1]:81'], 'host', '[::1]'],
            'no host' => [['SERVER_NAME' => 's'], 'host', 's'],
            'https' => [['HTTPS' => 'on'], 'isSecure', true],
            'https off' => [['HTTPS' => 'off'], 'isSecure', false],
            'id' => [['REQUEST_ID' => 'i'], 'id', 'i'],
            'headers' => [
                ['HTTP_X_TEST' => 'a', 'CONTENT_TYPE' => 'b', 'CONTENT_LENGTH' => ''],
                'headers',
                ['x-test' => 'a', 'content-type' => 'b'],
            ],
            'cookies' => [['HTTP_COOKIE' => 'a=b; c[d]=e'], 'cookies', ['a' => 'b', 'c' => ['d' => 'e']]],
            'server' => [
                ['PHP_AUTH_PW' => 'x', 'REQUEST_TIME' => '1', 'A' => 'b'],
                'server',
                ['A' => 'b', 'REQUEST_METHOD' => 'GET', 'REQUEST_URI' => '/', 'SERVER_PROTOCOL' => 'HTTP/1.1'],
            ],
        ];
    }

    public function testRequestIsLikeTheStubs(): void
    {
        $stubs = (string) file_get_contents(\dirname(__DIR__) . '/stubs/samovar.php');
        $stubs = explode('namespace {', explode('namespace Samovar {', $stubs)[1])[0];
        eval('namespace Samovar\Runtime\Tests\Stubs { ' . substr(rtrim($stubs), 0, -1) . ' }');
        foreach (['Request', 'Response'] as $class) {
            foreach ((new \ReflectionClass("Samovar\\Runtime\\Tests\\Stubs\\$class"))->getMethods() as $method) {
                if (!$method->isConstructor()) {
                    $ours = new \ReflectionMethod("Samovar\\$class", $method->getName());
                    self::assertSame($this->signature($method), $this->signature($ours));
                }
            }
        }
    }

    private function signature(\ReflectionMethod $method): string
    {
        $parameters = array_map(
            static fn (\ReflectionParameter $parameter): string => "{$parameter->getType()} \${$parameter->getName()}"
                . ($parameter->isOptional() ? ' = ' . json_encode($parameter->getDefaultValue()) : ''),
            $method->getParameters(),
        );

        return "{$method->getName()}(" . implode(', ', $parameters) . "): {$method->getReturnType()}";
    }
}
