<?php

declare(strict_types=1);

/*
 * The leaking application, resident. The environment selects how it is recycled:
 *
 *   BENCH_KEEPS=0         it keeps nothing: the cost without leak and without recycling
 *   BENCH_ROLLBACK=N      a rollback after N requests
 *   BENCH_RESTART=N       the worker ends after N requests and is replaced
 *   BENCH_OWN_BOOT=1      the boot leaves a connection open, so each worker boots on its own
 */

use function Samovar\Bench\Bootstrap\answer;
use function Samovar\Bench\Recycle\leak;
use function Samovar\serve;

require __DIR__ . '/leak.php';
$container = require dirname(__DIR__, 3) . '/apps/bootstrap/boot.php';
$keeps = getenv('BENCH_KEEPS') !== '0';
$restart = (int) getenv('BENCH_RESTART');
if (getenv('BENCH_OWN_BOOT')) {
    // Two processes cannot use one connection, so no image is shared.
    $connection = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
}
// One error line per recycled worker would measure the log.
ini_set('log_errors', '0');

serve(static function () use ($container, $keeps, $restart): void {
    static $served = 0;
    echo answer($container);
    leak($keeps);
    if (++$served === $restart) {
        // No request is lost: its response is complete. A fatal error is the way for a worker to
        // end on its own.
        fastcgi_finish_request();
        trigger_error('the worker has served enough', E_USER_ERROR);
    }
}, (int) getenv('BENCH_ROLLBACK'));
