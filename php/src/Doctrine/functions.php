<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Connection;
use Doctrine\DBAL\DriverManager;

/**
 * Another connection to the same database, out of the same pool: for a task that begins a transaction of its own. It
 * costs nothing until it is used.
 */
function another(Connection $connection): Connection
{
    return DriverManager::getConnection($connection->getParams(), $connection->getConfiguration());
}
