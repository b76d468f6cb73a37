<?php

declare(strict_types=1);

use Samovar\Request;
use Samovar\Response;

use function Samovar\Bench\Hello\answer;
use function Samovar\serve;

require __DIR__ . '/handler.php';

serve(static fn (Request $request): Response => new Response(answer()));
