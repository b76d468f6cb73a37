<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RunInSeparateProcess;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ResponseFactoryInterface;
use Samovar\Runtime\Cycle;
use Samovar\Runtime\Model;
use Samovar\Runtime\SessionSettings;
use Samovar\Runtime\Symfony\Psr15Runner;
use Samovar\Runtime\SymfonyRuntime;
use Samovar\Runtime\Tests\Fakes\Server as FakeServer;
use Symfony\Component\Console\Application;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\Runtime\Runner\ClosureRunner;
use Symfony\Component\Runtime\Runner\Symfony\ConsoleApplicationRunner;
use Symfony\Component\Runtime\Runner\Symfony\HttpKernelRunner;
use Symfony\Component\Runtime\Runner\Symfony\ResponseRunner;

/**
 * Tests the command line, where the runtime behaves like its parent class. ServerTest covers the
 * rest.
 */
final class SymfonyRuntimeTest extends TestCase
{
    private const QUIET = ['error_handler' => false, 'env' => 'test', 'debug' => false, 'disable_dotenv' => true];

    protected function setUp(): void
    {
        if (!class_exists(\Symfony\Component\Runtime\SymfonyRuntime::class)) {
            self::markTestSkipped('php-symfony-runtime is not installed');
        }
        FakeServer::reset();
    }

    /** @dataProvider applications */
    #[DataProvider('applications')]
    public function testRunnerOutsideOfSamovar(?object $application, string $runner): void
    {
        self::assertInstanceOf($runner, (new SymfonyRuntime(self::QUIET))->getRunner($application));
    }

    /** @return array<string, array{object|null, class-string}> */
    public static function applications(): array
    {
        return [
            'kernel' => [new Symfony\TerminableKernel('/dev/null'), HttpKernelRunner::class],
            'response' => [new Response(), ResponseRunner::class],
            'closure' => [static fn () => 0, ClosureRunner::class],
            'nothing' => [null, ClosureRunner::class],
            'console' => [new Application(), ConsoleApplicationRunner::class],
            'PSR-15' => [new Handler(), Psr15Runner::class],
        ];
    }

    public function testPsr15RunnerServes(): void
    {
        FakeServer::reset(['REQUEST_URI' => '/'], ['REQUEST_URI' => '/']);
        $status = (new SymfonyRuntime(self::QUIET + ['model' => 'resident']))->getRunner(new Handler())->run();

        self::assertSame([0, ['serve 0']], [$status, FakeServer::$calls]);
        self::assertSame(['1', '2'], array_map(static fn ($answer) => $answer->body(), FakeServer::$answers));
        (new SymfonyRuntime(self::QUIET))->getRunner(new Handler())->run();
        self::assertSame('serve 1', FakeServer::$calls[1]);
    }

    public function testApplicationIsGivenFactories(): void
    {
        $runtime = new SymfonyRuntime(self::QUIET);
        [, $arguments] = $runtime->getResolver(static fn (ResponseFactoryInterface $factory) => null)->resolve();

        self::assertInstanceOf(ResponseFactoryInterface::class, $arguments[0]);
    }

    /**
     * @dataProvider models
     *
     * @param array<string, string> $server
     */
    #[DataProvider('models')]
    public function testModel(?string $option, array $server, Model $expected): void
    {
        $_SERVER = $server + $_SERVER;

        self::assertSame($expected, Model::chosen($option));
    }

    /** @return array<string, array{string|null, array<string, string>, Model}> */
    public static function models(): array
    {
        return [
            'default' => [null, [], Model::Checkpoint],
            'option' => ['resident', ['SAMOVAR_MODEL' => 'checkpoint'], Model::Resident],
            'variable' => [null, ['SAMOVAR_MODEL' => 'resident'], Model::Resident],
            'variable of the application' => [null, ['APP_SAMOVAR_MODEL' => 'resident'], Model::Resident],
        ];
    }

    public function testUnknownModelIsRefused(): void
    {
        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessage('unknown model `swoole`');
        new SymfonyRuntime(self::QUIET + ['model' => 'swoole']);
    }

    public function testCycle(): void
    {
        $calls = [];
        $answer = static function () use (&$calls): void {
            $calls[] = 'answer';
        };
        $reset = static function () use (&$calls): void {
            $calls[] = 'reset';
        };
        (new Cycle(Model::Checkpoint))->run($answer, $reset);
        self::assertSame([['checkpoint'], ['answer']], [FakeServer::$calls, $calls]);

        FakeServer::reset([], []);
        $calls = [];
        (new Cycle(Model::Resident))->run($answer, $reset);
        self::assertSame(['serve 0'], FakeServer::$calls);
        self::assertSame(['answer', 'reset', 'answer', 'reset'], $calls);
    }

    /** @runInSeparateProcess */
    #[RunInSeparateProcess]
    public function testSessionSettingsAreMadeAgain(): void
    {
        $settings = new SessionSettings();
        ini_set('session.cookie_samesite', 'Lax');
        $settings->keep();
        ini_restore('session.cookie_samesite');
        $settings->apply();

        self::assertSame('Lax', ini_get('session.cookie_samesite'));
    }
}
