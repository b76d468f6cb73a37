<?php

declare(strict_types=1);

namespace App\Doctrine;

use Symfony\Bridge\Doctrine\DependencyInjection\Security\UserProvider\EntityFactory;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\HttpKernel\Bundle\Bundle;

/** The services of Doctrine's ORM that this application needs. Debian has no doctrine-bundle. */
final class DoctrineBundle extends Bundle
{
    public function build(ContainerBuilder $container): void
    {
        $container->getExtension('security')
            ->addUserProviderFactory(new EntityFactory('entity', 'doctrine.orm.security.user.provider'));
    }

    public function getContainerExtension(): DoctrineExtension
    {
        return new DoctrineExtension();
    }
}
