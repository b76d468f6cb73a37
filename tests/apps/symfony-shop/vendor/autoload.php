<?php

declare(strict_types=1);

/*
 * The file that Composer would write. Each Debian package has its own autoloader. This file adds
 * those for App\ and for samovar/runtime, which is here through a path repository's symlink.
 */

require_once '/usr/share/php/Doctrine/ORM/autoload.php';
require_once '/usr/share/php/Symfony/Bundle/FrameworkBundle/autoload.php';
require_once '/usr/share/php/Symfony/Bundle/SecurityBundle/autoload.php';
require_once '/usr/share/php/Symfony/Bundle/TwigBundle/autoload.php';
require_once '/usr/share/php/Symfony/Bridge/Doctrine/autoload.php';
require_once '/usr/share/php/Symfony/Component/Asset/autoload.php';
require_once '/usr/share/php/Symfony/Component/Console/autoload.php';
require_once '/usr/share/php/Symfony/Component/Dotenv/autoload.php';
require_once '/usr/share/php/Symfony/Component/Form/autoload.php';
require_once '/usr/share/php/Symfony/Component/Messenger/autoload.php';
require_once '/usr/share/php/Symfony/Component/Messenger/Bridge/Doctrine/autoload.php';
require_once '/usr/share/php/Symfony/Component/Mime/autoload.php';
require_once '/usr/share/php/Symfony/Component/Runtime/autoload.php';
require_once '/usr/share/php/Symfony/Component/Security/Csrf/autoload.php';
require_once '/usr/share/php/Symfony/Component/Translation/autoload.php';
require_once '/usr/share/php/Symfony/Component/Validator/autoload.php';
require_once '/usr/share/php/Symfony/Component/VarDumper/autoload.php';
require_once '/usr/share/php/Symfony/Component/Yaml/autoload.php';
// Development tools, lazy services before Symfony 7, and a message queue other than the database.
$more = ['Bundle/DebugBundle', 'Bundle/WebProfilerBundle', 'Component/Stopwatch', 'Bridge/ProxyManager'];
foreach ([...$more, 'Component/Messenger/Bridge/Redis'] as $part) {
    $loader = "/usr/share/php/Symfony/$part/autoload.php";
    is_file($loader) && require_once $loader;
}
require_once __DIR__ . '/composer.php';
require_once __DIR__ . '/samovar/runtime/autoload.php';

return spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'App\\')) {
        $file = dirname(__DIR__) . '/src/' . strtr(substr($class, strlen('App\\')), '\\', '/') . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
}) ? new stdClass() : null;
