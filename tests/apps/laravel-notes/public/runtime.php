<?php

declare(strict_types=1);

/* Does the work of Composer's vendor/autoload_runtime.php for a front controller that returns
 * Laravel's application. */

use Samovar\Runtime\SymfonyRuntime;

require __DIR__ . '/../bootstrap/autoload.php';
require __DIR__ . '/../bootstrap/runtime.php';

$runtime = new SymfonyRuntime([
    'env' => 'production',
    'debug' => false,
    'error_handler' => false,
    'disable_dotenv' => true,
    'warmup' => ['/'],
]);
[$application, $arguments] = $runtime
    ->getResolver(static fn (): object => require __DIR__ . '/../bootstrap/app.php')
    ->resolve();

exit($runtime->getRunner($application(...$arguments))->run());
