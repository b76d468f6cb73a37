<?php

declare(strict_types=1);

/*
 * Workerman's HTTP server around a workload's handler, after Workerman's documentation.
 */

namespace Samovar\Bench\Workerman;

use Workerman\Connection\TcpConnection;
use Workerman\Protocols\Http\Request;
use Workerman\Protocols\Http\Response;
use Workerman\Worker;

/**
 * Serves until SIGINT, which is Workerman's signal to stop. Arguments: "start", which Workerman
 * reads, and the port.
 *
 * @param callable(Request): Response $handler
 */
function serve(callable $handler): void
{
    $folder = getenv('BENCH_WORKERMAN') ?: '/opt/workerman';
    require "$folder/vendor/autoload.php";

    Worker::$pidFile = getenv('BENCH_VAR') . '/workerman.pid';
    Worker::$logFile = getenv('BENCH_VAR') . '/workerman.log';
    TcpConnection::$defaultMaxPackageSize = 64 * 1024 * 1024;
    $worker = new Worker('http://127.0.0.1:' . $_SERVER['argv'][2]);
    $worker->count = (int) getenv('BENCH_WORKERS');
    // Each worker has its own listening socket, so that the kernel distributes connections among
    // them.
    $worker->reusePort = true;
    $worker->onMessage = static function (TcpConnection $connection, Request $request) use ($handler): void {
        $connection->send($handler($request));
    };
    Worker::runAll();
}
