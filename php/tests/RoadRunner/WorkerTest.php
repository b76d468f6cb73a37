<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\RoadRunner;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Samovar\Runtime\Tests\Server;

/** Runs unchanged RoadRunner worker scripts, each in its own server. */
final class WorkerTest extends TestCase
{
    private const APPS = __DIR__ . '/../apps';

    protected function setUp(): void
    {
        if (Server::samovar() === null) {
            self::markTestSkipped('target/release/samovar was not built, and SAMOVAR_BINARY names none');
        }
    }

    public function testRequestIsTheOneThatWasSent(): void
    {
        $server = Server::serving(self::APPS . '/roadrunner.php')->untilBootedAhead();
        $headers = [
            'Host: example.org:81',
            'X-Test: a',
            'Cookie: c=d',
            'Content-Type: application/x-www-form-urlencoded',
        ];
        $answer = $server->ask('/echo?a=1&b[]=2', 'POST', $headers, 'e[f]=g');

        self::assertSame([201, ['a=1', 'b=2']], [$answer->status, $answer->headers['set-cookie']]);
        self::assertSame([
            'method' => 'POST',
            'uri' => 'http://example.org:81/echo?a=1&b%5B%5D=2',
            'protocol' => '1.1',
            'query' => ['a' => '1', 'b' => ['2']],
            'cookies' => ['c' => 'd'],
            'form' => ['e' => ['f' => 'g']],
            'header' => 'a',
            'body' => 'e[f]=g',
            'file' => null,
        ], $answer->json());
        $form = "--x\r\nContent-Disposition: form-data; name=\"letters[first][]\"; filename=\"tea.txt\"\r\n"
            . "Content-Type: text/plain\r\n\r\nhot\r\n--x--\r\n";
        $uploaded = $server->ask('/echo', 'POST', ['Content-Type: multipart/form-data; boundary=x'], $form);
        self::assertSame('tea.txt hot', $uploaded->json()['file']);
        $json = $server->ask('/echo', 'PUT', ['Content-Type: application/json'], '{"a":1}')->json();
        self::assertSame([null, '{"a":1}'], [$json['form'], $json['body']]);
    }

    /** @dataProvider ends */
    #[DataProvider('ends')]
    public function testScriptThatEndsWithoutRespondingIsReplaced(string $target): void
    {
        $server = Server::serving(self::APPS . '/roadrunner.php')->untilBootedAhead();
        $answer = $server->ask($target);

        self::assertSame(500, $answer->status);
        self::assertSame('Hello, request 1', $server->ask('/')->body, 'a fresh worker');
        self::assertStringNotContainsString('signal', $server->log());
    }

    /** @return list<array{string}> */
    public static function ends(): array
    {
        return [['/exit'], ['/escape']];
    }

    public function testLoopGoesOnAfterEachEndOfARequest(): void
    {
        $server = Server::serving(self::APPS . '/roadrunner.php')->untilBootedAhead();
        $first = $this->number($server->ask('/')->body);

        self::assertSame(1_000_000, \strlen($server->ask('/big')->body));
        self::assertSame('', $server->ask('/big', 'HEAD')->body);
        self::assertSame([500, ''], [($thrown = $server->ask('/throw'))->status, $thrown->body]);
        self::assertSame(500, $server->ask('/silent')->status);
        self::assertSame($first + 4, $this->number($server->ask('/print')->body));
        self::assertSame($first + 5, $this->number($server->ask('/')->body));
        self::assertLogged('thrown in the loop', $server);
        self::assertLogged('output of the worker script: printed by the loop', $server);
        self::assertLogged('did not respond', $server);
    }

    private static function assertLogged(string $text, Server $server): void
    {
        self::assertStringContainsString($text, $server->logWith($text));
    }

    public function testStoppedWorkerIsReplaced(): void
    {
        $server = Server::serving(self::APPS . '/roadrunner.php')->untilBootedAhead();

        self::assertGreaterThanOrEqual(1, $count = $this->number($server->ask('/last')->body));
        self::assertSame(1, $this->number($server->ask('/')->body));
        self::assertLogged("stopped after $count requests", $server);
        self::assertSame(0, $server->status()['worker_restarts_total'], $server->log());
    }

    public function testRolledBackLoopBeginsAnew(): void
    {
        $server = Server::serving(self::APPS . '/roadrunner.php', [], ['--rollback-every', '1'])->untilBootedAhead();

        foreach (['/', '/throw', '/', '/big', '/'] as $target) {
            $answer = $server->ask($target);
            $target === '/' && self::assertSame(1, $this->number($answer->body));
        }
        self::assertSame('checkpoint', $server->status()['workers'][0]['model'], $server->log());
    }

    public function testPlainRequestsAndPiecesOfAnAnswer(): void
    {
        $server = Server::serving(self::APPS . '/roadrunner-plain.php')->untilBootedAhead();
        $headers = ['Host: example.org', 'Content-Type: application/x-www-form-urlencoded'];
        $answer = $server->ask('/a?b=1', 'POST', $headers, 'c=2');

        self::assertSame(['a', 'b'], $answer->headers['x-two']);
        self::assertSame(
            'head POST http://example.org/a?b=1 127.0.0.1 [{"b":"1"},{"c":"2"}] end',
            $answer->body,
            $server->log(),
        );
    }

    private function number(string $body): int
    {
        self::assertMatchesRegularExpression('/^Hello, request \d+$/D', $body);

        return (int) substr($body, \strlen('Hello, request '));
    }
}
