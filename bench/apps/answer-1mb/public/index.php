<?php

declare(strict_types=1);

use function Samovar\Bench\Large\answer;

require dirname(__DIR__) . '/handler.php';

header('Content-Type: text/plain');
echo answer();
