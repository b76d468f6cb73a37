<?php

declare(strict_types=1);

namespace Samovar\Runtime;

/**
 * Published values under a SAPI other than Samovar. They belong to this process and live as long as
 * it.
 *
 * @internal for the functions of the namespace Samovar
 */
final class Published
{
    private const NAME_BYTES_MAX = 256;
    private const DEPTH_MAX = 128;

    /** @var array<string, mixed> */
    private static array $values = [];

    public static function publish(string $name, mixed $value): void
    {
        $bytes = \strlen($name);
        if ($bytes === 0 || $bytes > self::NAME_BYTES_MAX) {
            $most = self::NAME_BYTES_MAX;
            throw new \ValueError("the name of a published value has 1 to $most bytes, not $bytes");
        }
        self::check($name, $value, '$value', 0);
        if ($value === null) {
            unset(self::$values[$name]);
        } else {
            self::$values[$name] = $value;
        }
    }

    public static function get(string $name): mixed
    {
        return self::$values[$name] ?? null;
    }

    private static function check(string $name, mixed $value, string $path, int $depth): void
    {
        if (!\is_array($value)) {
            if ($value !== null && !\is_scalar($value)) {
                $type = \get_debug_type($value);
                throw new \TypeError("Samovar\publish(): `$name` cannot be published: $path is of type $type");
            }
            return;
        }
        if ($depth === self::DEPTH_MAX) {
            throw new \ValueError('Samovar\publish(): Argument #2 ($value) must not be nested deeper than '
                . self::DEPTH_MAX . ' arrays');
        }
        foreach ($value as $key => $part) {
            $quoted = \is_int($key) ? (string) $key : "'$key'";
            self::check($name, $part, "{$path}[$quoted]", $depth + 1);
        }
    }
}
