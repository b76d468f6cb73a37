<?php

declare(strict_types=1);

use function Samovar\Bench\Echoing\respond;

require __DIR__ . '/handler.php';

$handler = static function (): void {
    respond(file_get_contents('php://input'));
};

while (frankenphp_handle_request($handler)) {
    continue;
}
