<?php

// An inverted loop: the main script runs within the request, whose handler waits in a fiber.
$turns = new Fiber(static function (): void {
    $handler = static function (): void {
        register_shutdown_function(static fn () => error_log('the request is shut down'));
        Fiber::suspend();
    };
    while (frankenphp_handle_request($handler)) {
        continue;
    }
});
register_shutdown_function(static fn () => error_log('the boot is shut down'));
$turns->start();
while (!$turns->isTerminated()) {
    echo 'answered';
    match ($_SERVER['REQUEST_URI']) {
        '/exit' => exit,
        '/throw' => throw new RuntimeException('nobody catches this'),
        '/memory' => [ini_set('memory_limit', '8M'), str_repeat('x', 1 << 26)],
        default => fastcgi_finish_request(),
    };
    $turns->resume();
}
