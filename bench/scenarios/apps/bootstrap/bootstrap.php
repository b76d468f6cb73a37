<?php

declare(strict_types=1);

/*
 * bench/apps/bootstrap, booted again in each request of a resident process. Its class files are
 * loaded once; the container and its objects are created for each request. Only the classes are
 * shared.
 */

use Samovar\Bench\Bootstrap\Container;

use function Samovar\Bench\Bootstrap\answer;
use function Samovar\Bench\Bootstrap\generatedFolder;
use function Samovar\serve;

$application = dirname(__DIR__, 3) . '/apps/bootstrap';
require "$application/src/folder.php";
require "$application/src/Container.php";
require "$application/handler.php";

$folder = generatedFolder();
spl_autoload_register(static function (string $class) use ($folder): void {
    if (str_starts_with($class, 'Generated\\')) {
        require $folder . '/' . strtr(substr($class, strlen('Generated\\')), '\\', '/') . '.php';
    }
});

serve(static function () use ($folder): void {
    $container = new Container(require "$folder/definitions.php");
    $container->makeAll();
    echo answer($container);
});
