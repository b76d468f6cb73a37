<?php

declare(strict_types=1);

namespace Samovar\Runtime;

/**
 * Session settings that services change with ini_set() only once, when the session is first used,
 * as Symfony 5.4 does. The server resets them after that request, but the service still exists.
 * This class applies them again in later requests.
 *
 * @internal
 */
final class SessionSettings
{
    /** @var array<string, string|null> settings before the first request */
    private array $boot;
    /** @var array<string, string> settings that a request has changed */
    private array $made = [];

    public function __construct()
    {
        $this->boot = self::current();
    }

    /** Runs at the start of a request. */
    public function apply(): void
    {
        foreach ($this->made as $name => $value) {
            ini_set($name, $value);
        }
    }

    /** Runs at the end of a request. */
    public function keep(): void
    {
        $this->made = array_filter(
            self::current(),
            fn (?string $value, string $name): bool => $value !== null && $value !== $this->boot[$name],
            ARRAY_FILTER_USE_BOTH,
        );
    }

    /** @return array<string, string|null> */
    private static function current(): array
    {
        $settings = \extension_loaded('session') ? ini_get_all('session', false) : [];
        // session_set_save_handler() sets a value that ini_set() rejects.
        unset($settings['session.save_handler']);

        return $settings;
    }
}
