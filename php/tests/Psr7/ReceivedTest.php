<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Psr7;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Samovar\Request as NativeRequest;
use Samovar\Runtime\Psr7\HeaderMap;
use Samovar\Runtime\Psr7\ServerRequest;
use Samovar\Runtime\Psr7\Stream;
use Samovar\Runtime\Psr7\Uri;

/** Tests that php-http's tests do not include. */
final class ReceivedTest extends TestCase
{
    /**
     * @dataProvider uris
     *
     * @param array<string, string> $server
     */
    #[DataProvider('uris')]
    public function testUri(array $server, string $uri, string $target): void
    {
        $request = ServerRequest::received(NativeRequest::of($server));

        self::assertSame([$uri, $target], [(string) $request->getUri(), $request->getRequestTarget()]);
    }

    /** @return array<string, array{array<string, string>, string, string}> */
    public static function uris(): array
    {
        return [
            'plain' => [['HTTP_HOST' => 'h', 'REQUEST_URI' => '/a?b'], 'http://h/a?b', '/a?b'],
            'secure' => [['HTTP_HOST' => 'h:443', 'HTTPS' => 'on'], 'https://h/', '/'],
            'a port' => [['HTTP_HOST' => 'H:8443', 'HTTPS' => 'on'], 'https://h:8443/', '/'],
            'IPv6' => [['HTTP_HOST' => '[::1]:81'], 'http://[::1]:81/', '/'],
            'two slashes name no host' => [
                ['HTTP_HOST' => 'h', 'REQUEST_URI' => '//evil/a'],
                'http://h//evil/a',
                '//evil/a',
            ],
            'a host that is none' => [['HTTP_HOST' => 'a b/c', 'REQUEST_URI' => '/x'], 'http:/x', '/x'],
            'asterisk' => [['HTTP_HOST' => 'h', 'REQUEST_URI' => '*'], 'http://h', '*'],
        ];
    }

    public function testFormIsThatOfAPost(): void
    {
        $server = ['REQUEST_METHOD' => 'POST', 'CONTENT_TYPE' => 'Multipart/Form-Data; boundary=x'];
        $form = ['a' => ['b']];

        self::assertSame($form, ServerRequest::received(NativeRequest::of($server, $form))->getParsedBody());
        $server['CONTENT_TYPE'] = 'application/json';
        self::assertNull(ServerRequest::received(NativeRequest::of($server))->getParsedBody());
    }

    public function testUploadsAreATree(): void
    {
        $files = [
            'one' => ['name' => 'a.txt', 'type' => 'text/plain', 'tmp_name' => '/none', 'error' => 0, 'size' => 1],
            'deep' => [
                'name' => ['x' => ['b.txt', 'c.txt']],
                'full_path' => ['x' => ['b.txt', 'c.txt']],
                'type' => ['x' => ['text/b', 'text/c']],
                'tmp_name' => ['x' => ['/none', '']],
                'error' => ['x' => [UPLOAD_ERR_OK, UPLOAD_ERR_NO_FILE]],
                'size' => ['x' => [2, 0]],
            ],
        ];
        $tree = ServerRequest::received(NativeRequest::of([], [], $files))->getUploadedFiles();

        self::assertSame('a.txt', $tree['one']->getClientFilename());
        self::assertSame(['c.txt', 4, 0], [
            $tree['deep']['x'][1]->getClientFilename(),
            $tree['deep']['x'][1]->getError(),
            $tree['deep']['x'][1]->getSize(),
        ]);
        $this->expectException(\RuntimeException::class);
        $tree['deep']['x'][1]->getStream();
    }

    public function testNothingIsReadBeforeItIsAsked(): void
    {
        $opened = 0;
        $stream = Stream::opening(static function () use (&$opened) {
            $opened++;

            return fopen('data:text/plain,tea', 'r');
        }, 3);

        self::assertSame([3, 0], [$stream->getSize(), $opened]);
        self::assertSame(['tea', 1], [(string) $stream, $opened]);
        $stream->close();
        $this->expectException(\RuntimeException::class);
        $stream->read(1);
    }

    public function testAttributesOfTheNativeRequestComeAlong(): void
    {
        $native = NativeRequest::of();
        $native->setAttribute('a', 1);
        $request = ServerRequest::received($native)->withAttribute('b', null);

        self::assertSame(['b' => null, 'a' => 1], $request->getAttributes());
        self::assertNull($request->getAttribute('b', 'default'));
    }

    /** @dataProvider invalidHeaders */
    #[DataProvider('invalidHeaders')]
    public function testHeadersCannotBeSmuggled(string $name, string $value): void
    {
        $this->expectException(\InvalidArgumentException::class);
        HeaderMap::received([])->with($name, $value);
    }

    /** @return list<array{string, string}> */
    public static function invalidHeaders(): array
    {
        return [["X\r\nY", 'a'], ['X', "a\r\nY: b"], ['X', "a\nb"], ['X', "a\0"], ['X Y', 'a'], ['X:', 'a']];
    }

    /** @dataProvider invalidUris */
    #[DataProvider('invalidUris')]
    public function testWhatIsNoUriIsRefused(string $uri): void
    {
        $this->expectException(\InvalidArgumentException::class);
        Uri::parse($uri);
    }

    /** @return list<array{string}> */
    public static function invalidUris(): array
    {
        return [[':'], ['http://'], ['http:///a'], ['http://h:99999/'], ['http://h:x/'], ['1a://h'], ["http://h\n/"]];
    }
}
