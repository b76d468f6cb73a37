<?php

declare(strict_types=1);

namespace App;

use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\HttpKernel\Kernel as BaseKernel;

/** Reads config/. Cache and log are in var/. */
final class Kernel extends BaseKernel
{
    use MicroKernelTrait;

    public function getProjectDir(): string
    {
        return dirname(__DIR__);
    }

    /** With CONNECT_ABOVE=1, the boot opens the connection to the database. */
    public function boot(): void
    {
        $isBooted = $this->booted;
        parent::boot();
        if (!$isBooted && getenv('CONNECT_ABOVE') === '1') {
            $this->getContainer()->get('doctrine')->getConnection()->getNativeConnection();
        }
    }

    /** This is the default in Symfony 6, and Symfony 7 does not have the option. */
    protected function build(ContainerBuilder $container): void
    {
        if (self::MAJOR_VERSION < 6) {
            $container->prependExtensionConfig('security', ['enable_authenticator_manager' => true]);
        }
    }
}
