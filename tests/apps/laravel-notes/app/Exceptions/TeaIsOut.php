<?php

declare(strict_types=1);

namespace App\Exceptions;

final class TeaIsOut extends \RuntimeException
{
    public function __construct(public readonly int $left)
    {
        parent::__construct("$left leaves left");
    }
}
