<?php

declare(strict_types=1);

/* Bootstrap of the generated suite of bench/scenarios/php_tests.py. */

foreach (['APP_CACHE_DIR' => '/cache', 'APP_LOG_DIR' => '/log'] as $name => $folder) {
    $_SERVER[$name] = $_ENV[$name] = getenv('SAMOVAR_BENCH_FOLDER') . $folder;
    putenv("$name=$_SERVER[$name]");
}

require dirname(__DIR__, 4) . '/examples/symfony/autoload.php';
require __DIR__ . '/TestKernel.php';
require __DIR__ . '/FunctionalTestCase.php';
