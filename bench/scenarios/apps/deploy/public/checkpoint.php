<?php

declare(strict_types=1);

use App\Kernel;
use Symfony\Component\HttpFoundation\Request;

require dirname(__DIR__) . '/release.php';

$release = require dirname(__DIR__) . '/name.php';
$kernel = new Kernel('prod', false);
// As in examples/symfony: the image contains the page's classes and templates, and its services are
// reset.
Samovar\warmup(static function () use ($kernel): void {
    $_COOKIE = [session_name() => str_repeat('0', 26)];
    $request = Request::create('/', cookies: $_COOKIE, server: $_SERVER);
    $kernel->terminate($request, $kernel->handle($request));
    $kernel->boot();
    unset($_SESSION, $_COOKIE[session_name()]);
});
Samovar\checkpoint();

Samovar\Bench\Deploy\answer($kernel, $release);
