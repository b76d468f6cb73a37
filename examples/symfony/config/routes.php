<?php

declare(strict_types=1);

use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;

return static function (RoutingConfigurator $routes): void {
    // An absolute path of a folder needs no type. The type is `annotation` in Symfony 5 and
    // `attribute` in Symfony 7.
    $routes->import(dirname(__DIR__) . '/src/Controller');
};
