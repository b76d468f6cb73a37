<?php

declare(strict_types=1);

use function Samovar\Bench\Planted\answer;

require dirname(__DIR__) . '/handler.php';

echo answer();
