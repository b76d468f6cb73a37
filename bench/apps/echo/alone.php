<?php

declare(strict_types=1);

use function Samovar\Bench\Alone\request;
use function Samovar\Bench\Alone\run;
use function Samovar\Bench\Echoing\respond;

require dirname(__DIR__) . '/alone.php';
require __DIR__ . '/handler.php';

// The command line has no php://input to fill, so the body is prepared here.
$body = file_get_contents(__DIR__ . '/body.json');

run(static function () use ($body): void {
    respond($body);
}, [request('/', 'POST', [
    'Content-Type' => 'application/json',
    'Content-Length' => (string) strlen($body),
    'Accept' => 'application/json',
    'Accept-Language' => 'en-GB,en;q=0.8',
    'Authorization' => 'Bearer 6f1c2d9a7b3e4c5d8e9f0a1b2c3d4e5f',
    'User-Agent' => 'samovar-load/1',
    'X-Request-Id' => '0b9f6f1e-4d8f-4a57-8a6b-0d6c6f2a9c11',
])]);
