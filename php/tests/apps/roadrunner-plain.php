<?php

declare(strict_types=1);

/* A RoadRunner worker script without PSR-7: plain values in, pieces out. */

require dirname(__DIR__) . '/libraries.php';

use Spiral\RoadRunner\Http\HttpWorker;
use Spiral\RoadRunner\Worker;

$http = new HttpWorker(Worker::create());
while ($request = $http->waitRequest()) {
    $pieces = static function () use ($request): Generator {
        yield "$request->method $request->uri ";
        yield $request->getRemoteAddr() . ' ' . json_encode([$request->query, $request->getParsedBody()]);

        return ' end';
    };
    $http->respond(200, 'head ', ['X-Two' => ['a', 'b']], false);
    $http->respond(200, $pieces());
}
