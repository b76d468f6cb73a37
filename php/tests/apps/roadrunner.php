<?php

declare(strict_types=1);

/* A RoadRunner worker script like the one in its documentation: a loop that waits for PSR-7
 * requests. */

require dirname(__DIR__) . '/libraries.php';

use Nyholm\Psr7\Factory\Psr17Factory;
use Nyholm\Psr7\Response;
use Psr\Http\Message\ServerRequestInterface;
use Spiral\RoadRunner\Http\PSR7Worker;
use Spiral\RoadRunner\Worker;

$count = 0;
$answer = static function (ServerRequestInterface $request) use (&$count): Response {
    $count++;
    $file = $request->getUploadedFiles()['letters']['first'][0] ?? null;

    return match ($request->getUri()->getPath()) {
        '/echo' => new Response(201, ['Set-Cookie' => ['a=1', 'b=2']], json_encode([
            'method' => $request->getMethod(),
            'uri' => (string) $request->getUri(),
            'protocol' => $request->getProtocolVersion(),
            'query' => $request->getQueryParams(),
            'cookies' => $request->getCookieParams(),
            'form' => $request->getParsedBody(),
            'header' => $request->getHeaderLine('X-Test'),
            'body' => (string) $request->getBody(),
            'file' => $file === null ? null : "{$file->getClientFilename()} {$file->getStream()}",
        ], JSON_THROW_ON_ERROR)),
        '/big' => new Response(200, [], str_repeat('b', 1_000_000)),
        '/throw', '/escape' => throw new RuntimeException('thrown in the loop'),
        default => new Response(200, ['Content-Type' => 'text/plain'], "Hello, request $count"),
    };
};

$worker = Worker::create();
$factory = new Psr17Factory();
$psr7 = new PSR7Worker($worker, $factory, $factory, $factory);

while ($request = $psr7->waitRequest()) {
    try {
        if ($request->getUri()->getPath() === '/silent') {
            continue;
        }
        if ($request->getUri()->getPath() === '/print') {
            echo 'printed by the loop';
        }
        if ($request->getUri()->getPath() === '/exit') {
            exit;
        }
        $psr7->respond($answer($request));
        if ($request->getUri()->getPath() === '/last') {
            $worker->stop();
        }
    } catch (Throwable $thrown) {
        if ($request->getUri()->getPath() === '/escape') {
            throw $thrown;
        }
        $psr7->getWorker()->error((string) $thrown);
    }
}
error_log("stopped after $count requests");
