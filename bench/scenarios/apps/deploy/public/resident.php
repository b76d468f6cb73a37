<?php

declare(strict_types=1);

use App\Kernel;

use function Samovar\Bench\Deploy\answer;
use function Samovar\serve;

require dirname(__DIR__) . '/release.php';

$release = require dirname(__DIR__) . '/name.php';
$kernel = new Kernel('prod', false);
$kernel->boot();
// As in examples/symfony: settings of PHP's session hold for all requests if they are made before
// serve().
$kernel->getContainer()->get('app.session_factory')->createSession();

serve(static function () use ($kernel, $release): void {
    answer($kernel, $release);
    $kernel->getContainer()->get('services_resetter')->reset();
});
