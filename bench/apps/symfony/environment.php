<?php

declare(strict_types=1);

/*
 * The application is examples/symfony of this repository. Each server has its own cache, separate
 * from the others.
 */

$_SERVER['APP_CACHE_DIR'] = $_ENV['APP_CACHE_DIR'] = getenv('BENCH_VAR') . '/cache';
$_SERVER['APP_LOG_DIR'] = $_ENV['APP_LOG_DIR'] = getenv('BENCH_VAR') . '/log';
