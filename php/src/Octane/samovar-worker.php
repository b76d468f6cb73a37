<?php

/*
 * Laravel Octane on Samovar. `octane:start --server=samovar` has copied this file here and serves it; files beside it
 * are sent as they are.
 */

$basePath = $_SERVER['APP_BASE_PATH'] ?? dirname(__DIR__);

require_once $basePath . '/vendor/autoload.php';

$worker = Samovar\Runtime\Octane\OctaneWorker::boot($basePath);

Samovar\serve($worker->answer(...), Samovar\Runtime\Octane\OctaneWorker::requestsMax());
