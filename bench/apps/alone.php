<?php

declare(strict_types=1);

/*
 * The limit of PHP: a handler in a loop of php8.2, without a server. Each workload's alone.php
 * calls run().
 *
 * Superglobals are assigned for each request as a server fills them. The arrays themselves are
 * built once, because their cost belongs to the servers. Output is buffered and dropped; headers
 * are dropped.
 */

namespace Samovar\Bench\Alone;

const WARMUP_SECONDS_MAX = 1.0;

/**
 * The data that a server passes to PHP for one request.
 *
 * @param array<string, string> $headers
 * @param array<string, string> $cookies
 *
 * @return array{server: array<string, mixed>, get: array<mixed>, cookie: array<string, string>}
 */
function request(string $target = '/', string $method = 'GET', array $headers = [], array $cookies = []): array
{
    $query = (string) parse_url($target, PHP_URL_QUERY);
    parse_str($query, $get);
    $headers += ['Host' => '127.0.0.1:8080', 'Accept' => '*/*'];
    if ($cookies !== []) {
        $headers['Cookie'] = http_build_query($cookies, '', '; ');
    }
    $server = [
        'DOCUMENT_ROOT' => dirname($_SERVER['SCRIPT_FILENAME']),
        'GATEWAY_INTERFACE' => 'CGI/1.1',
        'PHP_SELF' => '/index.php',
        'QUERY_STRING' => $query,
        'REMOTE_ADDR' => '127.0.0.1',
        'REMOTE_PORT' => '50000',
        'REQUEST_METHOD' => $method,
        'REQUEST_SCHEME' => 'http',
        'REQUEST_TIME' => time(),
        'REQUEST_TIME_FLOAT' => microtime(true),
        'REQUEST_URI' => $target,
        'SCRIPT_FILENAME' => dirname($_SERVER['SCRIPT_FILENAME']) . '/index.php',
        'SCRIPT_NAME' => '/index.php',
        'SERVER_ADDR' => '127.0.0.1',
        'SERVER_NAME' => '127.0.0.1',
        'SERVER_PORT' => '8080',
        'SERVER_PROTOCOL' => 'HTTP/1.1',
        'SERVER_SOFTWARE' => 'alone',
    ];
    foreach ($headers as $name => $value) {
        $key = strtoupper(strtr($name, '-', '_'));
        $server[in_array($key, ['CONTENT_TYPE', 'CONTENT_LENGTH'], true) ? $key : "HTTP_$key"] = $value;
    }

    return ['server' => $server, 'get' => $get, 'cookie' => $cookies];
}

/**
 * Calls the handler for the number of seconds in the command line, after a warm-up, and prints the
 * figures as JSON.
 *
 * @param callable(): mixed $handler reads the superglobals and echoes
 * @param list<array{server: array<string, mixed>, get: array<mixed>, cookie: array<string, string>}>
 *     $requests used in turn
 */
function run(callable $handler, array $requests): void
{
    $seconds = (float) ($_SERVER['argv'][1] ?? 1);
    // Data that are built at the first request must not be built in measured ones. A response that
    // is not the expected one shows in "bytes".
    loop($handler, $requests, min(WARMUP_SECONDS_MAX, $seconds));
    $figures = loop($handler, $requests, $seconds);
    echo json_encode($figures, JSON_THROW_ON_ERROR), "\n";
}

/**
 * @return array{requests: int, cpu_us: float, bytes: float} CPU and bytes of the response body per
 *     request
 */
function loop(callable $handler, array $requests, float $seconds): array
{
    $bytes = 0;
    $discard = static function (string $output) use (&$bytes): string {
        $bytes += strlen($output);

        return '';
    };
    $post = $files = [];
    $done = 0;
    $count = count($requests);
    $deadline = hrtime(true) + $seconds * 1e9;
    $begun = cpuMicroseconds();
    do {
        $request = $requests[$done % $count];
        $_SERVER = $request['server'];
        $_GET = $request['get'];
        $_POST = $post;
        $_FILES = $files;
        $_COOKIE = $request['cookie'];
        ob_start($discard);
        $handler();
        ob_end_flush();
        header_remove();
        $done++;
    } while (hrtime(true) < $deadline);

    return [
        'requests' => $done,
        'cpu_us' => round((cpuMicroseconds() - $begun) / $done, 3),
        'bytes' => round($bytes / $done, 1),
    ];
}

/** User and system time of this process. */
function cpuMicroseconds(): int
{
    $usage = getrusage();

    return ($usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']) * 1_000_000
        + $usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec'];
}
