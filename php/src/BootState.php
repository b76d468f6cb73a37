<?php

declare(strict_types=1);

namespace Samovar\Runtime;

/**
 * The entries that the boot added to $_SERVER and $_ENV, mainly variables of a .env file. Each
 * request gets new superglobals, and these entries are added to them again.
 *
 * @internal
 */
final class BootState
{
    /** @var array<string, mixed> */
    private array $server = [];
    /** @var array<string, mixed> */
    private array $env = [];

    /**
     * @param array<string, mixed> $serverBefore $_SERVER before the boot
     * @param array<string, mixed> $envBefore $_ENV before the boot
     */
    public function __construct(private array $serverBefore, private array $envBefore)
    {
    }

    /** Stores the entries that are new or changed since the start of the boot. */
    public function keep(): void
    {
        $this->server = self::changed($_SERVER, $this->serverBefore);
        $this->env = self::changed($_ENV, $this->envBefore);
    }

    /** Adds the stored entries to the superglobals of a request. */
    public function apply(): void
    {
        $_SERVER = $this->server + $_SERVER;
        $_ENV = $this->env + $_ENV;
    }

    /**
     * @param array<string, mixed> $now
     * @param array<string, mixed> $before
     *
     * @return array<string, mixed>
     */
    private static function changed(array $now, array $before): array
    {
        return array_filter(
            $now,
            static fn (mixed $value, int|string $name): bool =>
                !\array_key_exists($name, $before) || $before[$name] !== $value,
            ARRAY_FILTER_USE_BOTH,
        );
    }
}
