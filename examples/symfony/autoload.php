<?php

declare(strict_types=1);

/*
 * Replaces Composer's vendor/autoload.php. Each Debian package has its own autoloader. This
 * file adds the one for App\.
 */

require_once '/usr/share/php/Symfony/Bundle/FrameworkBundle/autoload.php';
require_once '/usr/share/php/Symfony/Bundle/TwigBundle/autoload.php';
require_once '/usr/share/php/Symfony/Component/Asset/autoload.php';
require_once '/usr/share/php/Symfony/Component/Form/autoload.php';
require_once '/usr/share/php/Symfony/Component/Mime/autoload.php';
require_once '/usr/share/php/Symfony/Component/Security/Csrf/autoload.php';
require_once '/usr/share/php/Symfony/Component/Validator/autoload.php';

require_once __DIR__ . '/composer.php';

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'App\\')) {
        $file = __DIR__ . '/src/' . strtr(substr($class, strlen('App\\')), '\\', '/') . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});
