<?php

/* The scripts of ../differential behind a resident handler: each request includes the one that the path names. */

Samovar\serve(function (): void {
    $script = dirname(__DIR__) . '/differential' . parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
    (static function () use ($script): void {
        include $script;
    })();
});
