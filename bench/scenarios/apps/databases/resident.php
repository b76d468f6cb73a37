<?php

declare(strict_types=1);

use function Samovar\Bench\Databases\answer;
use function Samovar\Bench\Databases\database;
use function Samovar\serve;

require __DIR__ . '/handler.php';

serve(static function (): void {
    header('Content-Type: text/plain');
    echo answer(database());
});
