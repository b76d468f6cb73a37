<?php

/**
 * The scripts of ../conformance behind one handler. Samovar calls it for each request; php-fpm, which does
 * not know Samovar\serve(), runs this whole file for each request: the answers are to be equal.
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
