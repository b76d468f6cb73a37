<?php

declare(strict_types=1);

use function Samovar\Bench\Bootstrap\answer;
use function Samovar\serve;

$container = require __DIR__ . '/boot.php';

serve(static function () use ($container): void {
    echo answer($container);
});
