<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr7;

/**
 * The headers of a message. Lookup is case-insensitive, and the original spelling of names is
 * preserved. Immutable.
 *
 * @internal
 */
final class HeaderMap
{
    /** A name is an RFC 9110 token. */
    private const NAME = '/^[!#$%&\'*+.^_`|~0-9A-Za-z-]+$/D';
    /** A value has no control characters except tab: CR and LF would start another header. */
    private const VALUE = '/^[\x20\x09\x21-\x7E\x80-\xFF]*$/D';

    /** @param array<string, array{string, list<string>}> $lines by lower-case name: name, values */
    private function __construct(private array $lines = [])
    {
    }

    /**
     * Creates a map of headers that a server has parsed. They are not validated again.
     *
     * @param array<string, string> $headers
     */
    public static function received(array $headers): self
    {
        $lines = [];
        foreach ($headers as $name => $value) {
            $name = (string) $name;
            $lines[strtolower($name)] = [$name, [$value]];
        }

        return new self($lines);
    }

    /** @return array<string, list<string>> */
    public function all(): array
    {
        return array_column($this->lines, 1, 0);
    }

    public function has(mixed $name): bool
    {
        return \is_string($name) && isset($this->lines[strtolower($name)]);
    }

    /** @return list<string> */
    public function values(mixed $name): array
    {
        return \is_string($name) ? $this->lines[strtolower($name)][1] ?? [] : [];
    }

    /** @throws \InvalidArgumentException */
    public function with(mixed $name, mixed $values): self
    {
        $name = self::name($name);
        $map = clone $this;
        $map->lines[strtolower($name)] = [$name, self::checked($name, $values)];

        return $map;
    }

    /** @throws \InvalidArgumentException */
    public function withAdded(mixed $name, mixed $values): self
    {
        $name = self::name($name);
        $map = clone $this;
        [$written, $before] = $this->lines[strtolower($name)] ?? [$name, []];
        $map->lines[strtolower($name)] = [$written, [...$before, ...self::checked($name, $values)]];

        return $map;
    }

    /** Returns a copy with $host as the first header, as RFC 9112 recommends. */
    public function withHost(string $host): self
    {
        return new self(['host' => ['Host', [$host]]] + $this->lines);
    }

    public function without(mixed $name): self
    {
        $map = clone $this;
        if (\is_string($name)) {
            unset($map->lines[strtolower($name)]);
        }

        return $map;
    }

    /** @throws \InvalidArgumentException */
    private static function name(mixed $name): string
    {
        if (\is_int($name)) {
            // PHP converts array keys such as '123' to integers.
            $name = (string) $name;
        }
        if (!\is_string($name) || preg_match(self::NAME, $name) !== 1) {
            throw new \InvalidArgumentException('A header\'s name must be a token, ' . self::told($name) . ' given');
        }

        return $name;
    }

    /**
     * @return list<string>
     *
     * @throws \InvalidArgumentException
     */
    private static function checked(string $name, mixed $values): array
    {
        $values = \is_array($values) ? array_values($values) : [$values];
        if ($values === []) {
            throw new \InvalidArgumentException("The header `$name` must have a value, an empty array given");
        }
        foreach ($values as $at => $value) {
            if (!\is_string($value) && !\is_int($value) && !\is_float($value)) {
                throw new \InvalidArgumentException(
                    "The header `$name` must have strings as values, " . self::told($value) . ' given',
                );
            }
            $values[$at] = trim((string) $value, " \t");
            if (preg_match(self::VALUE, $values[$at]) !== 1) {
                throw new \InvalidArgumentException("The header `$name` must not have control characters");
            }
        }

        return $values;
    }

    private static function told(mixed $value): string
    {
        return \is_string($value) ? '`' . addcslashes($value, "\0..\37\177") . '`' : get_debug_type($value);
    }
}
