<?php

declare(strict_types=1);

namespace Bench;

use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Component\Config\Loader\LoaderInterface;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\HttpKernel\Kernel;

/** The kernel of examples/symfony with the settings of tests. */
final class TestKernel extends Kernel
{
    use MicroKernelTrait {
        registerContainerConfiguration as registerApplication;
    }

    public function getProjectDir(): string
    {
        return dirname(__DIR__, 4) . '/examples/symfony';
    }

    public function registerContainerConfiguration(LoaderInterface $loader): void
    {
        $this->registerApplication($loader);
        $loader->load(static function (ContainerBuilder $container): void {
            $session = ['storage_factory_id' => 'session.storage.factory.mock_file'];
            $container->loadFromExtension('framework', ['test' => true, 'session' => $session]);
        });
    }
}
