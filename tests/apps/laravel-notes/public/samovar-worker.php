<?php

declare(strict_types=1);

/* The file that octane:start copies to public/, with a replacement worker where Octane is not
 * installed. */

use App\Worker\OctaneStyleWorker;
use App\Worker\Sandbox;
use Samovar\Runtime\Octane\OctaneWorker;
use Samovar\Runtime\Octane\SamovarClient;

require __DIR__ . '/../bootstrap/autoload.php';
require __DIR__ . '/../bootstrap/runtime.php';

$client = new SamovarClient();
$sandbox = new Sandbox(require __DIR__ . '/../bootstrap/app.php');
$worker = OctaneWorker::of(new OctaneStyleWorker($sandbox, $client), $client);

Samovar\serve($worker->answer(...), OctaneWorker::requestsMax());
