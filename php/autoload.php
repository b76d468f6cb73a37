<?php

declare(strict_types=1);

/* Autoloader for use without Composer. It loads the same files as composer.json. */

spl_autoload_register(static function (string $class): void {
    $file = match (true) {
        // Loaded only when the server does not define these classes.
        $class === 'Samovar\Breaker' => __DIR__ . '/polyfill/Breaker.php',
        $class === 'Samovar\BreakerOpenException' => __DIR__ . '/polyfill/BreakerOpenException.php',
        $class === 'Samovar\Cache' => __DIR__ . '/polyfill/Cache.php',
        $class === 'Samovar\Counter' => __DIR__ . '/polyfill/Counter.php',
        $class === 'Samovar\Job' => __DIR__ . '/polyfill/Job.php',
        $class === 'Samovar\Lock' => __DIR__ . '/polyfill/Lock.php',
        $class === 'Samovar\Mock' => __DIR__ . '/polyfill/Mock.php',
        $class === 'Samovar\Queue' => __DIR__ . '/polyfill/Queue.php',
        $class === 'Samovar\RateLimiter' => __DIR__ . '/polyfill/RateLimiter.php',
        $class === 'Samovar\Table' => __DIR__ . '/polyfill/Table.php',
        $class === 'Samovar\Request' => __DIR__ . '/polyfill/Request.php',
        $class === 'Samovar\Response' => __DIR__ . '/polyfill/Response.php',
        $class === 'Samovar\CancelledException' => __DIR__ . '/polyfill/CancelledException.php',
        $class === 'Samovar\Channel' => __DIR__ . '/polyfill/Channel.php',
        $class === 'Samovar\Pool' => __DIR__ . '/polyfill/Pool.php',
        $class === 'Samovar\Task' => __DIR__ . '/polyfill/Task.php',
        $class === 'Samovar\TimeoutException' => __DIR__ . '/polyfill/TimeoutException.php',
        $class === 'Samovar\Timer' => __DIR__ . '/polyfill/Timer.php',
        str_starts_with($class, 'Samovar\Runtime\\') =>
            __DIR__ . '/src/' . strtr(substr($class, strlen('Samovar\Runtime\\')), '\\', '/') . '.php',
        default => null,
    };
    if ($file !== null && is_file($file)) {
        require $file;
    }
});

require_once __DIR__ . '/polyfill/functions.php';
require_once __DIR__ . '/src/Doctrine/functions.php';
require_once __DIR__ . '/src/Laravel/functions.php';
require_once __DIR__ . '/src/Messenger/functions.php';
require_once __DIR__ . '/src/Psr15/functions.php';
require_once __DIR__ . '/src/RoadRunner/autoload.php';
