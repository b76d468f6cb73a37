<?php

declare(strict_types=1);

use function Samovar\Bench\Bootstrap\answer;

$container = require __DIR__ . '/boot.php';

// All pages need the same code. The results of PHP's first run of this code stay, as in a resident
// worker.
Samovar\warmup(static function () use ($container): void {
    echo answer($container);
});
Samovar\checkpoint();

echo answer($container);
