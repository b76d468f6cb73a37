<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Driver\AbstractException;

/** What connections out of a pool cannot do. */
final class Refused extends AbstractException
{
    public static function anothersTransaction(): self
    {
        return new self('Another task has a transaction on this Doctrine connection, which has one for all. '
            . 'Give each task that begins one its own: Samovar\Runtime\Doctrine\another($connection)');
    }
}
