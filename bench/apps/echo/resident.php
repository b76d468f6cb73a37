<?php

declare(strict_types=1);

use function Samovar\Bench\Echoing\respond;
use function Samovar\serve;

require __DIR__ . '/handler.php';

serve(static function (): void {
    respond(file_get_contents('php://input'));
});
