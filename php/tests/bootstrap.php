<?php

declare(strict_types=1);

/* For PHPUnit. */

use Nyholm\Psr7\Factory\Psr17Factory;

// Laravel 8 and Carbon of Debian are older than PHP 8.2.
error_reporting(E_ALL & ~E_DEPRECATED);

// Before the polyfill: serve() as a server has it, with requests that the tests make up.
require __DIR__ . '/fakes/server.php';
require __DIR__ . '/libraries.php';

if (stream_resolve_include_path('Http/Psr7Test/autoload.php') !== false) {
    require_once 'Http/Psr7Test/autoload.php';
}

// php-http's tests ask for these.
foreach (['REQUEST', 'RESPONSE', 'SERVER_REQUEST', 'STREAM', 'UPLOADED_FILE', 'URI'] as $made) {
    define("{$made}_FACTORY", Psr17Factory::class);
}

// php-http's tests make a folder where they stand.
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
