<?php

declare(strict_types=1);

namespace App\Doctrine;

use Doctrine\DBAL\Connection;
use Doctrine\DBAL\DriverManager;
use Doctrine\DBAL\Tools\DsnParser;

/** Creates the connection for a URL. */
final class Connections
{
    private const DRIVERS = ['sqlite' => 'pdo_sqlite', 'pgsql' => 'pdo_pgsql'];

    public static function open(string $url): Connection
    {
        return DriverManager::getConnection((new DsnParser(self::DRIVERS))->parse($url));
    }
}
