<?php

declare(strict_types=1);

/* Three callables for Daemon. onFinish writes to the file in the variable LOG. */

require dirname(__DIR__) . '/libraries.php';

use Samovar\Request;
use Samovar\Response;
use Samovar\Runtime\Daemon;

Daemon::serve(
    init: static fn (): object => new class () {
        public int $served = 0;
    },
    run: static function (Request $request, object $application): string|Response {
        $application->served++;

        return match ($request->path()) {
            '/exit' => exit('left'),
            '/throw' => throw new RuntimeException('thrown'),
            '/response' => new Response(['a', 'b'], 201, ['X-Served' => $application->served]),
            default => "served $application->served",
        };
    },
    onFinish: static function (Request $request, object $application): void {
        echo 'too late';
        file_put_contents($_SERVER['LOG'], "{$request->path()} $application->served\n", FILE_APPEND);
    },
);
