<?php

declare(strict_types=1);

return [
    'default' => 'single',
    'channels' => [
        'single' => ['driver' => 'single', 'path' => storage_path('logs/laravel.log'), 'level' => 'debug'],
        // Laravel 8 is older than PHP 8.2.
        'deprecations' => ['driver' => 'monolog', 'handler' => Monolog\Handler\NullHandler::class],
    ],
];
