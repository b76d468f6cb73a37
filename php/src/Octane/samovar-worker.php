<?php

/*
 * Worker script for Laravel Octane on Samovar. `octane:start --server=samovar` copied this file
 * here and serves it. The other files of this folder are served as static files.
 */

$basePath = $_SERVER['APP_BASE_PATH'] ?? dirname(__DIR__);

require_once $basePath . '/vendor/autoload.php';

$worker = Samovar\Runtime\Octane\OctaneWorker::boot($basePath);

Samovar\serve($worker->answer(...), Samovar\Runtime\Octane\OctaneWorker::requestsMax());
