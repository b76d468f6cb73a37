<?php

declare(strict_types=1);

/* Replaces Composer: loads the package samovar/runtime from the folder RUNTIME_PACKAGE, and the
 * packages that it needs. */

$package = $_SERVER['RUNTIME_PACKAGE'] ?? dirname(__DIR__, 4) . '/php';

require_once '/usr/share/php/Symfony/Component/Runtime/autoload.php';
require_once "$package/autoload.php";
if (!interface_exists(Laravel\Octane\Contracts\Client::class)) {
    require_once "$package/tests/fakes/octane.php";
}
