<?php

declare(strict_types=1);

/*
 * A resident application: the code above serve() runs once per worker, and the handler once per
 * request.
 *
 * samovar serve examples/resident/index.php
 */

use Samovar\Request;
use Samovar\Response;

use function Samovar\serve;

$bootedAt = hrtime(true);
$served = 0;

serve(function (Request $request) use ($bootedAt, &$served): Response {
    $served++;

    return match ($request->path()) {
        '/' => new Response("Hello from process " . getmypid() . ", request $served.\n", headers: [
            'Content-Type' => 'text/plain; charset=utf-8',
        ]),
        '/age' => new Response(
            json_encode(['seconds' => (hrtime(true) - $bootedAt) / 1e9, 'served' => $served], JSON_THROW_ON_ERROR),
            headers: ['Content-Type' => 'application/json'],
        ),
        '/stream' => new Response((function () {
            for ($i = 3; $i > 0; $i--) {
                yield "$i\n";
                usleep(200_000);
            }
            yield "liftoff\n";
        })(), headers: ['Content-Type' => 'text/plain']),
        '/echo' => new Response($request->body(), headers: [
            'Content-Type' => $request->header('content-type', 'application/octet-stream'),
        ]),
        default => new Response("No such page.\n", 404, ['Content-Type' => 'text/plain']),
    };
});
