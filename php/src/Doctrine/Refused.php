<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Driver\AbstractException;

/** What connections out of a pool cannot do. */
final class Refused extends AbstractException
{
}
