<?php

declare(strict_types=1);

use function Samovar\Bench\Statements\answer;
use function Samovar\Bench\Statements\products;

require __DIR__ . '/handler.php';

products();
Samovar\checkpoint();

echo answer();
