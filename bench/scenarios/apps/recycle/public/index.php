<?php

declare(strict_types=1);

// For php-fpm: it frees the leak after each request, and boots again for each request.

use function Samovar\Bench\Bootstrap\answer;
use function Samovar\Bench\Recycle\leak;

require dirname(__DIR__) . '/leak.php';
$container = require dirname(__DIR__, 4) . '/apps/bootstrap/boot.php';

echo answer($container);
leak(true);
