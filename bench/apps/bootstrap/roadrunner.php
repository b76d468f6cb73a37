<?php

declare(strict_types=1);

use function Samovar\Bench\Bootstrap\answer;
use function Samovar\Bench\RoadRunner\serve;

require dirname(__DIR__, 2) . '/peers/roadrunner/worker.php';
$container = require __DIR__ . '/boot.php';

serve(static fn (): array => [200, ['Content-Type' => ['text/html; charset=UTF-8']], answer($container)]);
