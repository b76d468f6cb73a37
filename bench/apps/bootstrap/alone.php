<?php

declare(strict_types=1);

use function Samovar\Bench\Alone\request;
use function Samovar\Bench\Alone\run;
use function Samovar\Bench\Bootstrap\answer;

require dirname(__DIR__) . '/alone.php';
$container = require __DIR__ . '/boot.php';

run(static function () use ($container): void {
    echo answer($container);
}, [request('/')]);
