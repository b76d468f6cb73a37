<?php

declare(strict_types=1);

use function Samovar\Bench\Bootstrap\answer;

$container = require dirname(__DIR__) . '/boot.php';

echo answer($container);
