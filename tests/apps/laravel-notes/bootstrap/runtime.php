<?php

declare(strict_types=1);

/* In place of Composer: the package samovar/runtime, from the folder that RUNTIME_PACKAGE names, and its neighbours. */

$package = $_SERVER['RUNTIME_PACKAGE'] ?? dirname(__DIR__, 4) . '/php';

require_once '/usr/share/php/Symfony/Component/Runtime/autoload.php';
require_once "$package/autoload.php";
if (!interface_exists(Laravel\Octane\Contracts\Client::class)) {
    require_once "$package/tests/fakes/octane.php";
}
