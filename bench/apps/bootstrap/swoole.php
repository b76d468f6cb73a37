<?php

declare(strict_types=1);

use Swoole\Http\Request;
use Swoole\Http\Response;

use function Samovar\Bench\Bootstrap\answer;
use function Samovar\Bench\Swoole\serve;

require dirname(__DIR__, 2) . '/peers/swoole/serve.php';
$container = require __DIR__ . '/boot.php';

serve(static function (Request $request, Response $response) use ($container): void {
    $response->end(answer($container));
});
