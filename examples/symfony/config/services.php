<?php

declare(strict_types=1);

use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;

return static function (ContainerConfigurator $container): void {
    $container->extension('framework', [
        // Unused here. An application that signs links or cookies sets its own secret.
        'secret' => '%env(APP_SECRET)%',
        'http_method_override' => false,
        'csrf_protection' => true,
        'form' => true,
        'router' => ['utf8' => true],
        'session' => [
            // Uses PHP's own session.save_handler and session.save_path of php.ini.
            'handler_id' => null,
            'storage_factory_id' => 'session.storage.factory.native',
            'cookie_samesite' => 'lax',
            'cookie_secure' => 'auto',
        ],
        'translator' => false,
        'validation' => true,
    ]);
    $container->extension('twig', [
        'default_path' => '%kernel.project_dir%/templates',
        'strict_variables' => true,
    ]);

    $container->parameters()->set('env(APP_SECRET)', 'set APP_SECRET');
    $container->services()
        ->defaults()->autowire()->autoconfigure()
        ->load('App\\', '../src/')->exclude('../src/Kernel.php')
        // Used by public/resident.php.
        ->alias('app.session_factory', 'session.factory')->public();
};
