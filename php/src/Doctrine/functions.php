<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Connection;
use Doctrine\DBAL\DriverManager;

/**
 * Creates another connection to the same database, from the same pool, for a task that starts its
 * own transaction. It takes no pooled connection until it is used.
 */
function another(Connection $connection): Connection
{
    return DriverManager::getConnection($connection->getParams(), $connection->getConfiguration());
}
