<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr15;

use Nyholm\Psr7\Factory\Psr17Factory;
use Nyholm\Psr7\Response;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ResponseInterface;
use Samovar\Runtime\Psr15\Answer;
use Samovar\Runtime\Psr17\Discovery;
use Samovar\Runtime\Psr7\Stream;

final class AnswerTest extends TestCase
{
    /** @dataProvider bodies */
    #[DataProvider('bodies')]
    public function testBody(ResponseInterface $response, string $method, string|int $expected): void
    {
        $body = Answer::of($response, $method)->body();
        if (\is_int($expected)) {
            self::assertIsIterable($body);
            $body = iterator_to_array($body, false);
            self::assertLessThanOrEqual(64 * 1024, max(array_map(\strlen(...), $body)));
            $body = \strlen(implode('', $body));
        }

        self::assertSame($expected, $body);
    }

    /**
     * @return array<string, array{ResponseInterface, string, string|int}> an int is the number of
     * bytes sent in pieces
     */
    public static function bodies(): array
    {
        $read = Stream::of('read');
        $read->read(2);

        return [
            'small' => [new Response(body: 'tea'), 'GET', 'tea'],
            'read before' => [new Response(body: $read), 'GET', 'read'],
            'big' => [new Response(body: str_repeat('x', 200_000)), 'GET', 200_000],
            'of unknown size' => [new Response(body: Stream::opening(fn () => popen('echo tea', 'r'))), 'GET', 4],
            'HEAD' => [new Response(body: 'tea'), 'HEAD', ''],
            'no content' => [new Response(204, body: 'tea'), 'GET', ''],
        ];
    }

    public function testStatusAndHeaders(): void
    {
        $answer = Answer::of(new Response(418, ['X-A' => ['1', '2'], 'Content-Type' => 'text/tea']));

        self::assertSame(418, $answer->status());
        self::assertSame(['X-A' => ['1', '2'], 'Content-Type' => ['text/tea']], $answer->headers());
    }

    public function testFactoriesAreDiscovered(): void
    {
        foreach (['Request', 'Response', 'ServerRequest', 'Stream', 'UploadedFile', 'Uri'] as $made) {
            $interface = "Psr\\Http\\Message\\{$made}FactoryInterface";
            $found = Discovery::find($interface);
            self::assertInstanceOf($interface, $found);
            self::assertInstanceOf(Psr17Factory::class, $found);
        }
        $this->expectException(\InvalidArgumentException::class);
        Discovery::find(\Countable::class);
    }
}
