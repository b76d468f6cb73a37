<?php

declare(strict_types=1);

use Workerman\Protocols\Http\Response;

use function Samovar\Bench\Hello\answer;
use function Samovar\Bench\Workerman\serve;

require dirname(__DIR__, 2) . '/peers/workerman/serve.php';
require __DIR__ . '/handler.php';

serve(static fn (): Response => new Response(200, ['Content-Type' => 'text/html; charset=UTF-8'], answer()));
