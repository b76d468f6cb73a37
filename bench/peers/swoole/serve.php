<?php

declare(strict_types=1);

/*
 * Swoole's HTTP server around a workload's handler, after Swoole's documentation. It has not been
 * run on the machine of this repository's figures: Swoole is not in Debian.
 */

namespace Samovar\Bench\Swoole;

use Swoole\Http\Request;
use Swoole\Http\Response;
use Swoole\Http\Server;

/**
 * Serves until SIGTERM. Arguments: the port.
 *
 * @param callable(Request, Response): void $handler
 */
function serve(callable $handler): void
{
    // In base mode each worker has its own connections. In process mode a master process has all
    // connections and passes requests on.
    $mode = getenv('BENCH_SWOOLE_MODE') === 'process' ? SWOOLE_PROCESS : SWOOLE_BASE;
    $server = new Server('127.0.0.1', (int) $_SERVER['argv'][1], $mode);
    $server->set([
        'worker_num' => (int) getenv('BENCH_WORKERS'),
        // The workloads are plain PHP that keeps its state in globals: one request at a time.
        'enable_coroutine' => false,
        'http_compression' => false,
        'log_level' => SWOOLE_LOG_WARNING,
        'package_max_length' => 64 * 1024 * 1024,
        'backlog' => 1024,
    ]);
    $server->on('request', $handler);
    $server->start();
}
