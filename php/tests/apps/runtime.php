<?php

declare(strict_types=1);

/* Does the work of Composer's vendor/autoload_runtime.php for the application in the variable
 * APP. */

require dirname(__DIR__) . '/libraries.php';

use Samovar\Runtime\SymfonyRuntime;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;

$count = 0;
$application = match ($_SERVER['APP']) {
    'symfony' => static function (array $context): object {
        require_once dirname(__DIR__, 3) . '/examples/symfony/autoload.php';

        return new App\Kernel('prod', false);
    },
    'request' => static fn (Request $request): Response => new Response('path ' . $request->getPathInfo()),
    'response' => static function (array $context) use (&$count): Response {
        $count++;

        return new Response('uri ' . ($context['REQUEST_URI'] ?? 'none') . " $count");
    },
    'callable' => static fn (): callable => static function () use (&$count): string {
        $count++;

        return 'uri ' . $_SERVER['REQUEST_URI'] . " $count";
    },
    'environment' => static function (): callable {
        $_SERVER['FROM_FILE'] = $_ENV['FROM_FILE'] = 'kept';

        return static fn (): string => "{$_SERVER['FROM_FILE']} {$_ENV['FROM_FILE']} {$_SERVER['APP_ENV']}";
    },
    'psr15' => static fn (): object => new Samovar\Runtime\Tests\Handler(),
    'terminable' => static fn (): object => new Samovar\Runtime\Tests\Symfony\TerminableKernel($_SERVER['LOG']),
    'laravel' => static fn (): object => Samovar\Runtime\Tests\Symfony\LaravelApplication::kernel(),
};

$runtime = new SymfonyRuntime(['env' => 'prod', 'debug' => false, 'error_handler' => false, 'disable_dotenv' => true]);
[$application, $arguments] = $runtime->getResolver($application)->resolve();
$application = $application(...$arguments);

exit($runtime->getRunner($application)->run());
