<?php

declare(strict_types=1);

use function Samovar\Bench\Planted\answer;
use function Samovar\serve;

require __DIR__ . '/handler.php';

serve(static function (): void {
    echo answer();
});
