<?php

declare(strict_types=1);

/*
 * php collect.php FRONT: runs that front controller once, as for a request of "/", and writes the
 * files of the classes loaded by the autoloader to $BENCH_VAR/preload.json.
 *
 * Files that the application includes by name are left out: a second include of a preloaded class
 * is a fatal error.
 */

namespace Samovar\Bench\Preload;

use ReflectionClass;

/** @var array<string, true> $asked */
$asked = [];
spl_autoload_register(static function (string $class) use (&$asked): void {
    $asked[$class] = true;
}, prepend: true);

// At the end of the script, so that it also works for a front controller that calls exit().
register_shutdown_function(static function () use (&$asked): void {
    $files = [];
    foreach (array_keys($asked) as $class) {
        // The class may be loaded by now, or may not exist: then the autoloader is not called
        // again.
        if (class_exists($class, false) || interface_exists($class, false) || trait_exists($class, false)) {
            $file = (new ReflectionClass($class))->getFileName();
            $file === false || $files[$file] = true;
        }
    }
    file_put_contents(
        getenv('BENCH_VAR') . '/preload.json',
        json_encode(array_keys($files), JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES),
    );
});

$_SERVER = [
    'REQUEST_METHOD' => 'GET',
    'REQUEST_URI' => '/',
    'QUERY_STRING' => '',
    'SERVER_NAME' => '127.0.0.1',
    'SERVER_PORT' => '80',
    'SERVER_PROTOCOL' => 'HTTP/1.1',
    'HTTP_HOST' => '127.0.0.1',
    'SCRIPT_NAME' => '/index.php',
    'SCRIPT_FILENAME' => $argv[1],
] + $_SERVER;

ob_start();
require $argv[1];
ob_end_clean();
