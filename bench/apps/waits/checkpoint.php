<?php

declare(strict_types=1);

use function Samovar\Bench\Waits\answer;

require __DIR__ . '/handler.php';

// The connection is opened below the checkpoint, in each request, as under php-fpm:
// docs/guide/checkpoint-model.md recommends it.
Samovar\checkpoint();

header('Content-Type: text/plain');
echo answer();
