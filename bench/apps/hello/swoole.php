<?php

declare(strict_types=1);

use Swoole\Http\Request;
use Swoole\Http\Response;

use function Samovar\Bench\Hello\answer;
use function Samovar\Bench\Swoole\serve;

require dirname(__DIR__, 2) . '/peers/swoole/serve.php';
require __DIR__ . '/handler.php';

serve(static function (Request $request, Response $response): void {
    $response->end(answer());
});
