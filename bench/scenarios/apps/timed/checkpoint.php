<?php

declare(strict_types=1);

use function Samovar\Bench\Timed\answer;

require __DIR__ . '/handler.php';

Samovar\checkpoint();

echo answer();
