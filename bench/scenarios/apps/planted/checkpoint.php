<?php

declare(strict_types=1);

use function Samovar\Bench\Planted\answer;

require __DIR__ . '/handler.php';

Samovar\checkpoint();

echo answer();
