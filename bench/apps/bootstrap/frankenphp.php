<?php

declare(strict_types=1);

use function Samovar\Bench\Bootstrap\answer;

$container = require __DIR__ . '/boot.php';

$handler = static function () use ($container): void {
    echo answer($container);
};

while (frankenphp_handle_request($handler)) {
    continue;
}
