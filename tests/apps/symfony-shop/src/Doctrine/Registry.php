<?php

declare(strict_types=1);

namespace App\Doctrine;

use Doctrine\ORM\EntityManagerInterface;
use Doctrine\Persistence\Proxy;
use Psr\Container\ContainerInterface;
use Symfony\Bridge\Doctrine\ManagerRegistry;
use Symfony\Contracts\Service\ResetInterface;

/** Holds the one connection and the one manager. The manager is cleared after each request. */
final class Registry extends ManagerRegistry implements ResetInterface
{
    private const NAME = 'default';
    private const MANAGER = 'doctrine.orm.default_entity_manager';

    public function __construct(ContainerInterface $container)
    {
        $this->container = $container;
        parent::__construct(
            'ORM',
            [self::NAME => 'doctrine.dbal.default_connection'],
            [self::NAME => self::MANAGER],
            self::NAME,
            self::NAME,
            Proxy::class,
        );
    }

    public function reset(): void
    {
        if (!$this->container->initialized(self::MANAGER)) {
            return;
        }
        $manager = $this->container->get(self::MANAGER);
        assert($manager instanceof EntityManagerInterface);
        // A manager that an exception has closed would stay closed for all later requests.
        $manager->isOpen() ? $manager->clear() : $this->resetManager();
    }
}
