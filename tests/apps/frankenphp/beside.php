<?php

// A script of the application that is not a worker script.

declare(strict_types=1);

try {
    frankenphp_handle_request(static function (): void {
        echo 'called';
    });
} catch (RuntimeException $refused) {
    echo json_encode([$refused->getMessage(), $_SERVER['FRANKENPHP_WORKER'] ?? null]);
}
