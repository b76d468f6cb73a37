<?php

declare(strict_types=1);

namespace Samovar;

/**
 * Test doubles exist only under `samovar test --mocks`, where this class is part of PHP. Elsewhere
 * each method throws. See php/stubs/mock.php.
 */
final class Mock
{
    /** @param array<mixed> $arguments */
    public static function __callStatic(string $name, array $arguments): never
    {
        throw new \LogicException(
            "Samovar\\Mock::$name() works only in tests\nhint: run them with `samovar test --mocks`"
        );
    }
}
