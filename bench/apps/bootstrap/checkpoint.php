<?php

declare(strict_types=1);

use function Samovar\Bench\Bootstrap\answer;

$container = require __DIR__ . '/boot.php';

Samovar\checkpoint();

echo answer($container);
