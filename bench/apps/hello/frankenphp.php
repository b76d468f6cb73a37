<?php

declare(strict_types=1);

use function Samovar\Bench\Hello\answer;

require __DIR__ . '/handler.php';

$handler = static function (): void {
    echo answer();
};

while (frankenphp_handle_request($handler)) {
    continue;
}
