<?php

declare(strict_types=1);

use function Samovar\Bench\Alone\request;
use function Samovar\Bench\Alone\run;
use function Samovar\Bench\Streamed\respond;

require dirname(__DIR__) . '/alone.php';
require __DIR__ . '/handler.php';

run(static function (): void {
    respond();
}, [request('/')]);
