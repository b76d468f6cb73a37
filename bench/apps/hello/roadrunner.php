<?php

declare(strict_types=1);

use function Samovar\Bench\Hello\answer;
use function Samovar\Bench\RoadRunner\serve;

require dirname(__DIR__, 2) . '/peers/roadrunner/worker.php';
require __DIR__ . '/handler.php';

serve(static fn (): array => [200, ['Content-Type' => ['text/html; charset=UTF-8']], answer()]);
