<?php

declare(strict_types=1);

namespace Samovar\Runtime;

/**
 * What the boot has put into $_SERVER and $_ENV, a .env file's variables above all. Each request is given superglobals
 * of its own; these entries are put into them again.
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
     * @param array<string, mixed> $serverBefore $_SERVER as it was before the boot
     * @param array<string, mixed> $envBefore $_ENV likewise
     */
    public function __construct(private array $serverBefore, private array $envBefore)
    {
    }

    /** Keeps what is new or changed since the boot began. */
    public function keep(): void
    {
        $this->server = self::changed($_SERVER, $this->serverBefore);
        $this->env = self::changed($_ENV, $this->envBefore);
    }

    /** Puts it into the superglobals of a request. */
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
