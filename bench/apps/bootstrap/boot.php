<?php

declare(strict_types=1);

/*
 * The boot: an autoloader, 300 class files, and a container that has created an object of each.
 * Returns the container.
 */

use Samovar\Bench\Bootstrap\Container;

use function Samovar\Bench\Bootstrap\generatedFolder;

require __DIR__ . '/src/folder.php';
require __DIR__ . '/src/Container.php';
require __DIR__ . '/handler.php';

$folder = generatedFolder();
spl_autoload_register(static function (string $class) use ($folder): void {
    if (str_starts_with($class, 'Generated\\')) {
        require $folder . '/' . strtr(substr($class, strlen('Generated\\')), '\\', '/') . '.php';
    }
});

$container = new Container(require "$folder/definitions.php");
$container->makeAll();

return $container;
