<?php

declare(strict_types=1);

use App\Doctrine\Connections;
use App\Doctrine\Registry;
use Doctrine\DBAL\Connection;
use Doctrine\ORM\Configuration;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\EntityManagerInterface;
use Doctrine\ORM\Mapping\Driver\AttributeDriver;
use Doctrine\ORM\Mapping\UnderscoreNamingStrategy;
use Doctrine\ORM\Proxy\ProxyFactory;
use Doctrine\Persistence\ManagerRegistry;
use Symfony\Bridge\Doctrine\Form\DoctrineOrmTypeGuesser;
use Symfony\Bridge\Doctrine\Form\Type\EntityType;
use Symfony\Bridge\Doctrine\Messenger\DoctrineClearEntityManagerWorkerSubscriber;
use Symfony\Bridge\Doctrine\Security\User\EntityUserProvider;
use Symfony\Bridge\Doctrine\Validator\Constraints\UniqueEntityValidator;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\Messenger\Bridge\Doctrine\Transport\DoctrineTransportFactory;

use function Symfony\Component\DependencyInjection\Loader\Configurator\service;

return static function (ContainerConfigurator $container): void {
    $services = $container->services();

    $services->set('doctrine.dbal.default_connection', Connection::class)
        ->factory([Connections::class, 'open'])
        ->args(['%env(resolve:DATABASE_URL)%'])
        ->public();
    $services->alias(Connection::class, 'doctrine.dbal.default_connection');

    $services->set('doctrine.orm.default_metadata_driver', AttributeDriver::class)
        ->args([['%kernel.project_dir%/src/Entity']]);
    $configuration = $services->set('doctrine.orm.default_configuration', Configuration::class)
        ->call('setMetadataDriverImpl', [service('doctrine.orm.default_metadata_driver')])
        ->call('setMetadataCache', [service('cache.system')])
        ->call('setQueryCache', [service('cache.system')])
        ->call('setNamingStrategy', [service('doctrine.orm.naming_strategy')])
        ->call('setProxyDir', ['%kernel.cache_dir%/doctrine/proxies'])
        ->call('setProxyNamespace', ['Proxies'])
        ->call('setAutoGenerateProxyClasses', [ProxyFactory::AUTOGENERATE_FILE_NOT_EXISTS]);
    if (PHP_VERSION_ID >= 80400 && method_exists(Configuration::class, 'enableNativeLazyObjects')) {
        // PHP's own lazy objects replace proxies. Doctrine 4 will support only these.
        $configuration->call('enableNativeLazyObjects', [true]);
    }
    $services->set('doctrine.orm.naming_strategy', UnderscoreNamingStrategy::class)->args([CASE_LOWER, true]);
    $services->set('doctrine.orm.default_entity_manager', EntityManager::class)
        ->args([service('doctrine.dbal.default_connection'), service('doctrine.orm.default_configuration')])
        // Services keep the proxy, while the registry may replace the manager in it.
        ->lazy()
        ->public();
    $services->alias(EntityManagerInterface::class, 'doctrine.orm.default_entity_manager');

    $services->set('doctrine', Registry::class)
        ->args([service('service_container')])
        ->tag('kernel.reset', ['method' => 'reset'])
        ->public();
    $services->alias(ManagerRegistry::class, 'doctrine');

    $services->set('doctrine.orm.security.user.provider', EntityUserProvider::class)
        ->abstract()
        ->args([service('doctrine')]);
    $services->set('form.type.entity', EntityType::class)
        ->args([service('doctrine')])
        ->tag('form.type')
        // The type caches choices, and with them their manager.
        ->tag('kernel.reset', ['method' => 'reset']);
    $services->set('form.type_guesser.doctrine', DoctrineOrmTypeGuesser::class)
        ->args([service('doctrine')])
        ->tag('form.type_guesser');
    $services->set('doctrine.orm.validator.unique', UniqueEntityValidator::class)
        ->args([service('doctrine')])
        ->tag('validator.constraint_validator', ['alias' => 'doctrine.orm.validator.unique']);
    $services->set('messenger.transport.doctrine.factory', DoctrineTransportFactory::class)
        ->args([service('doctrine')])
        ->tag('messenger.transport_factory');
    $services->set('doctrine.orm.messenger.clear', DoctrineClearEntityManagerWorkerSubscriber::class)
        ->args([service('doctrine')])
        ->tag('kernel.event_subscriber');
};
