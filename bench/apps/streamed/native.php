<?php

declare(strict_types=1);

use Samovar\Request;
use Samovar\Response;

use function Samovar\Bench\Streamed\pieces;
use function Samovar\serve;

use const Samovar\Bench\Streamed\HEADERS;

require __DIR__ . '/handler.php';

serve(static fn (Request $request): Response => new Response(pieces(), headers: HEADERS));
