<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Octane;

use Illuminate\Config\Repository;
use Illuminate\Container\Container;
use Illuminate\Http\Request;
use Laravel\Octane\Contracts\Worker;
use Laravel\Octane\OctaneResponse;
use Laravel\Octane\RequestContext;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Samovar\Runtime\Octane\Binary;
use Samovar\Runtime\Octane\Commands\ReloadCommand;
use Samovar\Runtime\Octane\Commands\StartCommand;
use Samovar\Runtime\Octane\Commands\StatusCommand;
use Samovar\Runtime\Octane\Commands\StopCommand;
use Samovar\Runtime\Octane\NotAvailable;
use Samovar\Runtime\Octane\OctaneWorker;
use Samovar\Runtime\Octane\SamovarClient;
use Samovar\Runtime\Octane\ServerProcessInspector;
use Samovar\Runtime\Octane\ServerStateFile;
use Samovar\Runtime\Octane\TaskDispatcher;
use Symfony\Component\Console\Input\ArrayInput;
use Symfony\Component\Console\Output\BufferedOutput;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpFoundation\StreamedResponse;

final class OctaneTest extends TestCase
{
    private ServerStateFile $state;
    private string $calls;
    private string $program;

    protected function setUp(): void
    {
        if (!class_exists(\Illuminate\Foundation\Application::class)) {
            self::markTestSkipped('php-laravel-framework is not installed');
        }
        $folder = getcwd() . '/octane-' . bin2hex(random_bytes(4));
        mkdir($folder);
        $this->state = new ServerStateFile("$folder/state.json");
        $this->calls = "$folder/calls";
        $this->program = "$folder/samovar";
        touch("$folder/control.sock");
        $this->state->writeState(['control' => "$folder/control.sock"]);
        $this->state->writeProcessId(7);
    }

    public function testStateIsKept(): void
    {
        $read = $this->state->read();

        self::assertSame([7, true], [$read['masterProcessId'], str_ends_with($read['state']['control'], '.sock')]);
        self::assertTrue($this->state->delete());
        self::assertSame(['masterProcessId' => null, 'state' => []], $this->state->read());
    }

    public function testInspectorAsksTheProgram(): void
    {
        $inspector = $this->inspector('status stop reload');

        self::assertTrue($inspector->serverIsRunning());
        $inspector->reloadServer();
        self::assertTrue($inspector->stopServer());
        self::assertSame("status\nreload\nstop\n", file_get_contents($this->calls));
    }

    public function testInspectorWithoutAServer(): void
    {
        $inspector = $this->inspector('');
        self::assertFalse($inspector->serverIsRunning());
        $this->state->delete();
        self::assertFalse($this->inspector('status')->serverIsRunning());
        self::assertFalse($inspector->stopServer());
        $this->expectExceptionMessage('the server is not running');
        $inspector->reloadServer();
    }

    /** @dataProvider commands */
    #[DataProvider('commands')]
    public function testCommand(string $class, ?string $server, string $can, int $status, string $printed): void
    {
        self::assertSame([$status, $printed], $this->runCommand($class, $server, $can));
    }

    /** @return array<string, array{class-string, string|null, string, int, string}> */
    public static function commands(): array
    {
        return [
            'start of another' => [StartCommand::class, 'swoole', '', 0, 'Octane: start'],
            'status of another' => [StatusCommand::class, null, '', 0, 'Octane: status'],
            'reload of another' => [ReloadCommand::class, 'roadrunner', '', 0, 'Octane: reload'],
            'stop of another' => [StopCommand::class, 'frankenphp', '', 0, 'Octane: stop'],
            'status' => [StatusCommand::class, 'samovar', 'status', 0, 'Octane server is running.'],
            'status, stopped' => [StatusCommand::class, 'samovar', '', 1, 'Octane server is not running.'],
            'reload' => [ReloadCommand::class, 'samovar', 'status reload', 0, 'Reloading workers...'],
            'reload, stopped' => [ReloadCommand::class, 'samovar', '', 1, 'Octane server is not running.'],
            'reload that fails' => [
                ReloadCommand::class, 'samovar', 'status', 1, "Reloading workers...\nsamovar: not now",
            ],
            'stop' => [StopCommand::class, 'samovar', 'status stop', 0, 'Stopping server...'],
            'stop, stopped' => [StopCommand::class, 'samovar', '', 1, 'Samovar is not running.'],
            'stop that fails' => [
                StopCommand::class, 'samovar', 'status', 1, "Stopping server...\nFailed to stop Samovar.",
            ],
        ];
    }

    /** @dataProvider responses */
    #[DataProvider('responses')]
    public function testClientResponds(Response $response, ?string $printed, string $expected): void
    {
        $this->expectOutputString($expected);
        (new SamovarClient())->respond(new RequestContext(), new OctaneResponse($response, $printed));
    }

    /** @return array<string, array{Response, string|null, string}> */
    public static function responses(): array
    {
        return [
            'text' => [new Response('text'), null, 'text'],
            'beside what was printed' => [new Response('text', 200, ['Content-Length' => '4']), 'more ', 'more text'],
            'streamed' => [new StreamedResponse(static fn () => print 'stream'), '', 'stream'],
        ];
    }

    public function testWorkerHandlesTheCurrentRequest(): void
    {
        $worker = new class () implements Worker {
            /** @var list<string> */
            public array $calls = [];

            public function boot(): void
            {
                $this->calls[] = 'boot';
            }

            public function handle(Request $request, RequestContext $context): void
            {
                $this->calls[] = $request->path();
            }

            public function handleTask($data)
            {
                return null;
            }

            public function terminate(): void
            {
            }
        };
        $octane = OctaneWorker::of($worker, new SamovarClient());
        foreach (['/a', '/b?c'] as $_SERVER['REQUEST_URI']) {
            $octane->answer();
        }

        self::assertSame(['boot', 'a', 'b'], $worker->calls);
        $_SERVER['MAX_REQUESTS'] = '250';
        self::assertSame(250, OctaneWorker::requestsMax());
    }

    public function testTasksSayThatTheyAreNotThere(): void
    {
        $this->expectException(NotAvailable::class);
        $this->expectExceptionMessage('Octane::concurrently() is not available');
        (new TaskDispatcher())->resolve([static fn () => 1]);
    }

    public function testProgramIsLookedFor(): void
    {
        $this->inspector('status');
        self::assertSame($this->program, Binary::find($this->program, '/')->path());
        self::assertSame($this->program, Binary::find(null, \dirname($this->program))->path());
        $this->expectExceptionMessage('cannot run `/none`');
        Binary::find('/none', '/');
    }

    /** @param string $can commands that the program has and that succeed */
    private function inspector(string $can): ServerProcessInspector
    {
        $cases = implode('|', array_filter(explode(' ', $can))) ?: 'nothing';
        file_put_contents(
            $this->program,
            "#!/bin/sh\necho \"\$1\" >> '$this->calls'\n"
            . "case \"\$1\" in $cases) exit 0;; *) echo 'samovar: not now' >&2; exit 1;; esac\n",
        );
        chmod($this->program, 0755);

        return new ServerProcessInspector($this->state, fn () => Binary::find($this->program, '/'));
    }

    /** @return array{int, string} */
    private function runCommand(string $class, ?string $server, string $can): array
    {
        $container = new class () extends Container {
            public function runningUnitTests(): bool
            {
                return true;
            }
        };
        $container->instance('config', new Repository(['octane' => ['server' => 'other']]));
        $container->instance(ServerStateFile::class, $this->state);
        $container->instance(ServerProcessInspector::class, $this->inspector($can));
        $command = new $class();
        $command->setLaravel($container);
        $output = new BufferedOutput();
        $status = $command->run(new ArrayInput($server === null ? [] : ['--server' => $server]), $output);

        return [$status, trim($output->fetch())];
    }
}
