<?php

declare(strict_types=1);

/* Bootstrap file for PHPUnit. */

use Nyholm\Psr7\Factory\Psr17Factory;

// Debian's Laravel 8 and Carbon are older than PHP 8.2.
error_reporting(E_ALL & ~E_DEPRECATED);

// Loaded before the polyfill: a fake serve() that gets its requests from the tests.
require __DIR__ . '/fakes/server.php';
require __DIR__ . '/libraries.php';

if (stream_resolve_include_path('Http/Psr7Test/autoload.php') !== false) {
    require_once 'Http/Psr7Test/autoload.php';
}

// php-http's tests require these constants.
foreach (['REQUEST', 'RESPONSE', 'SERVER_REQUEST', 'STREAM', 'UPLOADED_FILE', 'URI'] as $made) {
    define("{$made}_FACTORY", Psr17Factory::class);
}

// php-http's tests create a folder in the working directory.
$folder = sys_get_temp_dir() . '/samovar-runtime-' . getmypid();
mkdir($folder);
chdir($folder);
register_shutdown_function(static function () use ($folder): void {
    $entries = new RecursiveIteratorIterator(
        new RecursiveDirectoryIterator($folder, FilesystemIterator::SKIP_DOTS),
        RecursiveIteratorIterator::CHILD_FIRST,
    );
    foreach ($entries as $entry) {
        $entry->isDir() ? rmdir($entry->getPathname()) : unlink($entry->getPathname());
    }
    rmdir($folder);
});
