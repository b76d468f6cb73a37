<?php

declare(strict_types=1);

/*
 * The file that symfony/runtime's Composer plugin would write. It includes the calling script a
 * second time, to get the closure that it returns, and passes its application to the runtime.
 */

if (true === (require_once __DIR__ . '/autoload.php') || ($_SERVER['SCRIPT_FILENAME'] ?? '') === '') {
    return;
}

$application = require $_SERVER['SCRIPT_FILENAME'];
if (!is_object($application)) {
    $found = get_debug_type($application);
    throw new TypeError("{$_SERVER['SCRIPT_FILENAME']} must return a closure, $found returned");
}

$class = $_SERVER['APP_RUNTIME'] ?? $_ENV['APP_RUNTIME'] ?? Symfony\Component\Runtime\SymfonyRuntime::class;
$runtime = new $class(['project_dir' => dirname(__DIR__)] + ($_SERVER['APP_RUNTIME_OPTIONS'] ?? []));
[$application, $arguments] = $runtime->getResolver($application)->resolve();

exit($runtime->getRunner($application(...$arguments))->run());
