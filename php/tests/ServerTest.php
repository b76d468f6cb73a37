<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

/** Tests each part with a real server. */
final class ServerTest extends TestCase
{
    private string $log;

    protected function setUp(): void
    {
        if (Server::samovar() === null) {
            self::markTestSkipped('target/release/samovar was not built, and SAMOVAR_BINARY names none');
        }
        $this->log = tempnam(sys_get_temp_dir(), 'samovar-test-');
    }

    protected function tearDown(): void
    {
        is_file($this->log ?? '') && unlink($this->log);
    }

    public function testPsr7RequestIsTheOneThatWasSent(): void
    {
        $server = Server::serving(__DIR__ . '/apps/psr15.php');
        $headers = [
            'Host: example.org:81',
            'X-Test: a',
            'Cookie: c=d',
            'Content-Type: application/x-www-form-urlencoded',
            'Authorization: Basic ' . base64_encode('ann:tea'),
        ];

        self::assertSame([
            'method' => 'POST',
            'target' => '/echo?a=1&b[]=2',
            'uri' => 'http://example.org:81/echo?a=1&b%5B%5D=2',
            'query' => ['a' => '1', 'b' => ['2']],
            'cookies' => ['c' => 'd'],
            'form' => ['e' => ['f' => 'g']],
            'header' => 'a',
            'body' => 'e[f]=g',
            'size' => 6,
            'user' => 'ann',
        ], $server->ask('/echo?a=1&b[]=2', 'POST', $headers, 'e[f]=g')->json());
    }

    /** Runs php-http's tests in a worker, on its native request. */
    public function testNativeRequestPassesTheIntegrationTests(): void
    {
        if (!class_exists(\Http\Psr7Test\BaseTest::class)) {
            self::markTestSkipped('php-http-psr7-integration-tests is not installed');
        }
        $server = Server::serving(__DIR__ . '/apps/psr7.php');
        // The tests need a request without a Host header, which HTTP/1.0 allows.
        $socket = stream_socket_client('tcp' . substr($server->url(), \strlen('http')));
        fwrite($socket, "GET / HTTP/1.0\r\n\r\n");
        [, $body] = explode("\r\n\r\n", (string) stream_get_contents($socket), 2);

        self::assertMatchesRegularExpression('/^[1-9]\d+ tests$/D', $body, $server->log());
    }

    public function testPsr7BodiesGoInPieces(): void
    {
        $server = Server::serving(__DIR__ . '/apps/psr15.php');
        $body = random_bytes(1_000_000);

        $hashed = $server->ask('/hash', 'PUT', ['Content-Type: application/octet-stream'], $body);
        self::assertSame([201, hash('sha256', $body)], [$hashed->status, $hashed->body]);
        $big = $server->ask('/big');
        self::assertSame(str_repeat('b', Handler::BIG_BYTES), $big->body);
        self::assertArrayNotHasKey('content-length', $big->headers);
        self::assertSame('', $server->ask('/big', 'HEAD')->body);
        self::assertSame(204, $server->ask('/none')->status);
    }

    public function testPsr7UploadIsMovedAndCookiesAreAllSent(): void
    {
        $server = Server::serving(__DIR__ . '/apps/psr15.php');
        $form = "--x\r\nContent-Disposition: form-data; name=\"letters[first][]\"; filename=\"tea.txt\"\r\n"
            . "Content-Type: text/plain\r\n\r\nhot\r\n--x--\r\n";

        $uploaded = $server->ask('/upload', 'POST', ['Content-Type: multipart/form-data; boundary=x'], $form);
        self::assertSame('tea.txt text/plain hot', $uploaded->body);
        self::assertSame(['by=php', 'a=1', 'b=2'], $server->ask('/cookies')->headers['set-cookie']);
    }

    /** @dataProvider psr15States */
    #[DataProvider('psr15States')]
    public function testPsr15HandlerKeepsOrForgets(array $environment, array $expected): void
    {
        $server = Server::serving(__DIR__ . '/apps/psr15.php', $environment)->untilBootedAhead();
        $first = (int) $server->ask('/')->body;

        self::assertSame($expected, [(int) $server->ask('/')->body - $first, (int) $server->ask('/')->body - $first]);
    }

    /** @return array<string, array{array<string, string>, list<int>}> */
    public static function psr15States(): array
    {
        return [
            'resident' => [['ROLLBACK_EVERY' => '0'], [1, 2]],
            'rolled back' => [['ROLLBACK_EVERY' => '1'], [0, 0]],
        ];
    }

    public function testDaemonFinishesAfterTheAnswer(): void
    {
        $server = Server::serving(__DIR__ . '/apps/daemon.php', ['LOG' => $this->log])->untilBootedAhead('/first');
        preg_match('/^served (\d+)$/', $server->ask('/')->body, $found);
        $served = (int) $found[1];

        $response = $server->ask('/response');
        self::assertSame([201, 'ab'], [$response->status, $response->body]);
        self::assertSame([(string) ($served + 1)], $response->headers['x-served']);
        self::assertSame('left', $server->ask('/exit')->body);
        self::assertSame(500, $server->ask('/throw')->status);
        self::assertSame('served ' . ($served + 4), $server->ask('/last')->body);
        $lines = '';
        foreach (['/', '/response', '/exit', '/throw', '/last'] as $later => $path) {
            $lines .= "$path " . ($served + $later) . "\n";
        }
        $this->awaitLog($lines);
    }

    /**
     * Runs the same script under Samovar and under PHP's built-in server.
     *
     * @dataProvider servers
     */
    #[DataProvider('servers')]
    public function testWorkerScriptAnswersTheSameEverywhere(bool $isSamovar): void
    {
        $script = __DIR__ . '/apps/worker.php';
        $server = $isSamovar ? Server::serving($script) : Server::builtin($script);
        $headers = [
            'Host: example.org',
            'X-Test: a',
            'Cookie: c=d',
            'Content-Type: application/x-www-form-urlencoded',
        ];
        $answer = $server->ask('/some%20page?a=1', 'POST', $headers, 'b=2');

        self::assertSame(202, $answer->status);
        self::assertSame(['a', 'b'], $answer->headers['x-two']);
        self::assertSame([$isSamovar ? 'yes' : 'no'], $answer->headers['x-warm']);
        self::assertSame([
            'method' => 'POST',
            'uri' => '/some%20page?a=1',
            'path' => '/some%20page',
            'query' => ['a' => '1'],
            'queryString' => 'a=1',
            'form' => ['b' => '2'],
            'cookies' => ['c' => 'd'],
            'header' => 'a',
            'none' => 'default',
            'body' => 'b=2',
            'stream' => 'b=2',
            'host' => 'example.org',
            'secure' => false,
            'address' => '127.0.0.1',
            'protocol' => 'HTTP/1.1',
            'headers' => true,
            'server' => 'POST',
            'attribute' => [1, 2, ['a' => 1]],
        ], $answer->json());
        self::assertSame('text', $server->ask('/text')->body);
    }

    /** @return array<string, array{bool}> */
    public static function servers(): array
    {
        return ['Samovar' => [true], 'php -S' => [false]];
    }

    /**
     * @dataProvider runtimes
     *
     * @param list<string> $expected bodies for the targets /a and /b
     */
    #[DataProvider('runtimes')]
    public function testRuntime(string $application, string $model, array $expected): void
    {
        $environment = ['APP' => $application, 'APP_SAMOVAR_MODEL' => $model, 'LOG' => $this->log];
        $server = Server::serving(__DIR__ . '/apps/runtime.php', $environment)->untilBootedAhead();

        self::assertSame($expected, [$server->ask('/a')->body, $server->ask('/b')->body], $server->log());
        $models = array_column($server->status()['workers'], 'model');
        self::assertNotContains('script', $models, $server->log());
    }

    /** @return array<string, array{string, string, list<string>}> */
    public static function runtimes(): array
    {
        return [
            'request, checkpoint' => ['request', 'checkpoint', ['path /a', 'path /b']],
            'request, resident' => ['request', 'resident', ['path /a', 'path /b']],
            // The first call happens during the boot, as warm-up.
            'response, checkpoint' => ['response', 'checkpoint', ['uri /a 2', 'uri /b 2']],
            'callable, checkpoint' => ['callable', 'checkpoint', ['uri /a 1', 'uri /b 1']],
            'environment, checkpoint' => ['environment', 'checkpoint', ['kept kept prod', 'kept kept prod']],
            'environment, resident' => ['environment', 'resident', ['kept kept prod', 'kept kept prod']],
            'PSR-15, checkpoint' => ['psr15', 'checkpoint', ['1', '1']],
            'kernel, checkpoint' => ['terminable', 'checkpoint', ['handled /a', 'handled /b']],
            'kernel, resident' => ['terminable', 'resident', ['handled /a', 'handled /b']],
        ];
    }

    /**
     * @dataProvider models
     */
    #[DataProvider('models')]
    public function testKernelTerminatesAfterTheAnswer(string $model): void
    {
        $environment = ['APP' => 'terminable', 'APP_SAMOVAR_MODEL' => $model, 'LOG' => $this->log];
        $server = Server::serving(__DIR__ . '/apps/runtime.php', $environment)->untilBootedAhead();

        self::assertSame('handled /late', $server->ask('/late')->body);
        self::assertStringNotContainsString('/late', (string) file_get_contents($this->log));
        $this->awaitLog("terminated /late\n");
    }

    /** @return array<string, array{string}> */
    public static function models(): array
    {
        return ['checkpoint' => ['checkpoint'], 'resident' => ['resident']];
    }

    /** @dataProvider models */
    #[DataProvider('models')]
    public function testSymfonyExampleNeedsNoChange(string $model): void
    {
        if (stream_resolve_include_path('Symfony/Bundle/TwigBundle/autoload.php') === false) {
            self::markTestSkipped('php-symfony-twig-bundle is not installed');
        }
        $folder = getcwd() . "/symfony-$model";
        is_dir($folder) || mkdir($folder);
        $server = Server::serving(__DIR__ . '/apps/runtime.php', [
            'APP' => 'symfony',
            'APP_SAMOVAR_MODEL' => $model,
            'APP_CACHE_DIR' => $folder,
            'APP_LOG_DIR' => $folder,
        ])->untilBootedAhead();

        $answers = [];
        foreach (['Ann', 'Bob'] as $name) {
            $put = $server->ask('/api/session', 'PUT', ['Content-Type: application/json'], "{\"name\":\"$name\"}");
            $cookies[$name] = 'Cookie: ' . explode(';', $put->headers['set-cookie'][0])[0];
            $answers[] = $put->json();
        }
        foreach (['Ann', 'Bob', 'Ann'] as $name) {
            $answers[] = $server->ask('/api/session', 'GET', [$cookies[$name]])->json();
        }
        $answers[] = $server->ask('/api/session')->json();
        self::assertSame([
            ['name' => 'Ann', 'asked' => 1],
            ['name' => 'Bob', 'asked' => 1],
            ['name' => 'Ann', 'asked' => 2],
            ['name' => 'Bob', 'asked' => 2],
            ['name' => 'Ann', 'asked' => 3],
            ['name' => null, 'asked' => 1],
        ], $answers);
        self::assertStringContainsString('You have been here once', $server->ask('/')->body);
        self::assertSame(500, $server->ask('/boom')->status);
        self::assertSame("2\n1\nliftoff\n", $server->ask('/countdown/2')->body);
        self::assertSame(404, $server->ask('/nowhere')->status);
    }

    public function testLaravelForgetsWhoWasLoggedIn(): void
    {
        if (!class_exists(\Illuminate\Foundation\Application::class)) {
            self::markTestSkipped('php-laravel-framework is not installed');
        }
        $server = Server::serving(__DIR__ . '/apps/runtime.php', ['APP' => 'laravel'])->untilBootedAhead();

        self::assertStringEndsWith('/?a=1', $server->ask('/?a=1')->body, $server->log());
        self::assertSame('http://localhost', $server->ask('/boot')->body);
        self::assertSame('in', $server->ask('/login')->body);
        self::assertSame('nobody', $server->ask('/who')->body);
        self::assertNotContains('script', array_column($server->status()['workers'], 'model'), $server->log());
    }

    private function awaitLog(string $expected): void
    {
        $until = microtime(true) + 30;
        while (!str_ends_with((string) file_get_contents($this->log), $expected) && microtime(true) < $until) {
            usleep(10_000);
        }
        self::assertStringEndsWith($expected, (string) file_get_contents($this->log));
    }
}
