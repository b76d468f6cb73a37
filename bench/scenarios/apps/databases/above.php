<?php

declare(strict_types=1);

use function Samovar\Bench\Databases\answer;
use function Samovar\Bench\Databases\database;

require __DIR__ . '/handler.php';

database();
Samovar\checkpoint();

header('Content-Type: text/plain');
echo answer(database());
