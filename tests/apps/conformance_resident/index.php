<?php

/**
 * Serves the scripts of ../conformance with one handler. Samovar calls it for each request. php-fpm
 * does not have Samovar\serve() and runs this whole file for each request. The responses must be
 * equal.
 */

declare(strict_types=1);

$handler = static function (): void {
    $path = explode('?', $_SERVER['REQUEST_URI'], 2)[0];
    require dirname(__DIR__) . '/conformance/public/' . basename($path);
};

if (function_exists('Samovar\serve')) {
    Samovar\serve($handler);
} else {
    $handler();
}
