<?php

declare(strict_types=1);

use Samovar\Request;
use Samovar\Response;

use function Samovar\Bench\Bootstrap\answer;
use function Samovar\serve;

$container = require __DIR__ . '/boot.php';

serve(static fn (Request $request): Response => new Response(answer($container)));
