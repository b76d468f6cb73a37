<?php

declare(strict_types=1);

use function Samovar\Bench\Databases\answer;
use function Samovar\Bench\Databases\ask;
use function Samovar\Bench\Databases\connect;
use function Samovar\parallel;
use function Samovar\serve;

require __DIR__ . '/handler.php';

$databases = [1 => connect(), 2 => connect()];

serve(static function () use ($databases): void {
    header('Content-Type: text/plain');
    if (getenv('BENCH_TOGETHER') !== '1') {
        echo answer($databases[1]);

        return;
    }
    $answers = parallel([
        static fn () => ask($databases[1], 1),
        static fn () => ask($databases[2], 2),
    ]);
    echo implode($answers) . "answered\n";
});
