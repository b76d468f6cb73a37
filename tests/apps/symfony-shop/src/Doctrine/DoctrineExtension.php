<?php

declare(strict_types=1);

namespace App\Doctrine;

use Symfony\Component\Config\FileLocator;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\Extension\Extension;
use Symfony\Component\DependencyInjection\Extension\PrependExtensionInterface;
use Symfony\Component\DependencyInjection\Loader\PhpFileLoader;

/** Loads services.php of this folder. */
final class DoctrineExtension extends Extension implements PrependExtensionInterface
{
    public function getAlias(): string
    {
        return 'doctrine';
    }

    public function load(array $configs, ContainerBuilder $container): void
    {
        (new PhpFileLoader($container, new FileLocator(__DIR__)))->load('services.php');
    }

    public function prepend(ContainerBuilder $container): void
    {
        // The bundle has no configuration, but must still be loaded.
        $container->loadFromExtension('doctrine');
    }
}
