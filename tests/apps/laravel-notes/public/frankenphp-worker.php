<?php

declare(strict_types=1);

/* A FrankenPHP worker script like the one in its documentation: one boot, then a sandbox for
 * each request. */

use App\Worker\Sandbox;

require __DIR__ . '/../bootstrap/autoload.php';

$sandbox = new Sandbox(require __DIR__ . '/../bootstrap/app.php');
$handler = static function () use ($sandbox): void {
    $sandbox->answer();
};

$limit = (int) ($_SERVER['MAX_REQUESTS'] ?? 0);
for ($served = 0; $limit === 0 || $served < $limit; ++$served) {
    $goesOn = frankenphp_handle_request($handler);
    gc_collect_cycles();
    if (!$goesOn) {
        break;
    }
}
