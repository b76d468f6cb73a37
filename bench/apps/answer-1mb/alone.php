<?php

declare(strict_types=1);

use function Samovar\Bench\Alone\request;
use function Samovar\Bench\Alone\run;
use function Samovar\Bench\Large\answer;

require dirname(__DIR__) . '/alone.php';
require __DIR__ . '/handler.php';

run(static function (): void {
    header('Content-Type: text/plain');
    echo answer();
}, [request('/')]);
