<?php

declare(strict_types=1);

namespace App;

use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\HttpKernel\Kernel as BaseKernel;

/** Reads config/; cache and log go to var/. */
final class Kernel extends BaseKernel
{
    use MicroKernelTrait;

    public function getProjectDir(): string
    {
        return dirname(__DIR__);
    }

    /** Symfony 6 does it by itself, and Symfony 7 knows no such option. */
    protected function build(ContainerBuilder $container): void
    {
        if (self::MAJOR_VERSION < 6) {
            $container->prependExtensionConfig('security', ['enable_authenticator_manager' => true]);
        }
    }
}
