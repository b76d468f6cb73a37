<?php

// No worker script: it stands beside the application.

declare(strict_types=1);

try {
    frankenphp_handle_request(static function (): void {
        echo 'called';
    });
} catch (RuntimeException $refused) {
    echo json_encode([$refused->getMessage(), $_SERVER['FRANKENPHP_WORKER'] ?? null]);
}
