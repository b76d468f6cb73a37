<?php

declare(strict_types=1);

namespace Isolation\Unseen;

/** One of many objects. Its destruction runs no code. */
final class Node
{
    /** @var array<int|string, object> */
    public array $below = [];

    public function __construct(public string $name = '')
    {
    }
}
