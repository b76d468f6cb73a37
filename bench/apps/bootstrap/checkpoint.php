<?php

declare(strict_types=1);

use function Samovar\Bench\Bootstrap\answer;

$container = require __DIR__ . '/boot.php';

// What one page needs, all need: what PHP has found out by running the code once stays, as in a resident worker.
Samovar\warmup(static function () use ($container): void {
    echo answer($container);
});
Samovar\checkpoint();

echo answer($container);
