<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Driver\AbstractException;

/** Thrown for operations that pooled connections do not support. */
final class Refused extends AbstractException
{
    public static function anothersTransaction(): self
    {
        return new self('Another task has an active transaction on this Doctrine connection, which supports only one. '
            . 'Give each task with a transaction its own connection: Samovar\Runtime\Doctrine\another($connection)');
    }
}
