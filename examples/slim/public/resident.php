<?php

declare(strict_types=1);

/*
 * The same application, with its routes built once per worker:
 *
 *     samovar serve examples/slim/public/resident.php
 */

use Slim\DefaultServicesProvider;

use function Samovar\serve;

$app = require dirname(__DIR__) . '/src/app.php';

serve(static function () use ($app): void {
    $container = $app->getContainer();
    // Slim 3 keeps the request in its container. Without these entries each request gets its own.
    unset($container['environment'], $container['request'], $container['response']);
    (new DefaultServicesProvider())->register($container);
    $app->run();
});
