<?php

/** Tests of Samovar\Request and Samovar\Response. tests/suite/hygiene.rs requests it. */

declare(strict_types=1);

use Samovar\Request;
use Samovar\Response;

function all(Request $r): array
{
    return [
        'method' => $r->method(),
        'uri' => $r->uri(),
        'path' => $r->path(),
        'queryString' => $r->queryString(),
        'protocol' => $r->protocol(),
        'host' => $r->host(),
        'isSecure' => $r->isSecure(),
        'remoteAddress' => $r->remoteAddress(),
        'id' => $r->id(),
        'header' => $r->header('x-Test'),
        'header absent' => $r->header('absent'),
        'header default' => $r->header('absent', 'other'),
        'headers' => array_change_key_case($r->headers())['x-test'] ?? null,
        'query' => $r->query(),
        'form' => $r->form(),
        'cookies' => $r->cookies(),
        'files' => array_map(fn ($file) => $file['size'], $r->files()),
        'body' => $r->body(),
        'attribute' => $r->attribute('seen'),
        'attribute default' => $r->attribute('absent', 7),
        'attributes' => $r->attributes(),
        'server' => $r->server()['REQUEST_METHOD'] ?? null,
    ];
}

function pieces(int $n): Generator
{
    for ($i = 0; $i < $n; $i++) {
        yield "piece $i\n";
    }
}

function gated(string $file): Generator
{
    for ($i = 0; $i < 3; $i++) {
        while (!file_exists("$file.$i")) {
            usleep(2000);
            clearstatcache();
        }
        yield "piece $i\n";
    }
}

function failing(): Generator
{
    yield "a piece\n";
    throw new Exception('no more pieces');
}

function temporary(string $text)
{
    $stream = fopen('php://temp', 'w+');
    fwrite($stream, $text);
    rewind($stream);
    return $stream;
}

final class Text
{
    public function __toString(): string
    {
        return 'text';
    }
}

$kept = null;
Samovar\serve(function (Request $request) use (&$kept) {
    switch ($request->path()) {
        case '/all':
            $request->setAttribute('seen', [1]);
            return json_encode(all($request));
        case '/stream-body':
            return md5(stream_get_contents($request->bodyStream()));
        case '/keep':
            $kept = $request;
            $kept->setAttribute('seen', 'kept');
            return 'kept';
        case '/inert':
            try {
                $kept->bodyStream();
            } catch (Error $error) {
                $message = $error->getMessage();
            }
            return json_encode(all($kept) + ['bodyStream' => $message ?? 'open']);
        case '/new':
            return new Response('made', 201, ['X-One' => '1', 'X-Many' => ['a', 'b'], 'Content-Type' => 'text/x-test']);
        case '/defaults':
            $response = new Response();
            return json_encode([$response->status(), $response->headers(), $response->body()]);
        case '/getters':
            $response = new Response(['a'], 404, ['X' => 'y']);
            return json_encode([$response->status(), $response->headers(), $response->body()]);
        case '/array':
            return new Response(['one ', new Text(), ' ', 3]);
        case '/generator':
            return new Response(pieces(3));
        case '/iterator':
            return new Response(new ArrayIterator(['a', 'b']));
        case '/gated':
            return new Response(gated($request->query()['file']));
        case '/failing':
            return new Response(failing());
        case '/stream':
            return new Response(temporary(str_repeat('0123456789', 50000)));
        case '/echo':
            echo 'echoed';
            return;
        case '/both':
            echo 'echoed, ';
            return new Response('returned');
        case '/empty':
            return new Response('', 204);
        case '/header-and-response':
            header('X-By-Header: 1');
            setcookie('c', 'v');
            return new Response('x', 200, ['X-By-Response' => '1']);
        case '/return-int':
            return 5;
        case '/return-array':
            return ['a'];
        case '/return-true':
            return true;
        case '/return-object':
            return new stdClass();
        case '/bad':
            $make = [
                'body' => fn () => new Response(5),
                'status' => fn () => new Response('', 99),
                'status high' => fn () => new Response('', 600),
                'headers' => fn () => new Response('', 200, 'x'),
                'construct' => fn () => new Request(),
                'clone' => fn () => clone $request,
                'serialize' => fn () => serialize($request),
                'property' => fn () => $request->dirt = 1,
            ];
            $errors = [];
            foreach ($make as $name => $try) {
                try {
                    $try();
                    $errors[$name] = 'none';
                } catch (Throwable $error) {
                    $errors[$name] = get_class($error);
                }
            }
            return json_encode($errors);
        case '/bad-header':
            return new Response('never', 200, ["X-Bad" => "a\r\nX-Injected: b"]);
        case '/list-header':
            return new Response('never', 200, ['X-Bad: no name']);
        default:
            return 'at home';
    }
});
