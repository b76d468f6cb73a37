<?php

declare(strict_types=1);

use function Samovar\Bench\Databases\answer;
use function Samovar\Bench\Databases\database;

require dirname(__DIR__) . '/handler.php';

header('Content-Type: text/plain');
echo answer(database(persistent: getenv('BENCH_PERSISTENT') === '1'));
