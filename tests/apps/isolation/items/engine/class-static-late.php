<?php

/**
 * Static properties that are not used above the checkpoint, so that their values are still constant
 * expressions.
 */

declare(strict_types=1);

namespace Isolation\Items;

final class Shelf
{
    private const FIRST = 'green' . PHP_INT_SIZE;

    /** @var list<string> */
    public static array $teas = [self::FIRST, \PHP_VERSION_ID > 1 ? 'black' : ''];
}

return [
    'leak' => static fn () => Shelf::$teas[] = 'dirt',
    'look' => static fn () => \count(Shelf::$teas),
    'resident' => 'kept',
];
