<?php

declare(strict_types=1);

use function Samovar\Bench\Large\answer;

require __DIR__ . '/handler.php';

Samovar\checkpoint();

header('Content-Type: text/plain');
echo answer();
