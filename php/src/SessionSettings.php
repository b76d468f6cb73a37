<?php

declare(strict_types=1);

namespace Samovar\Runtime;

/**
 * Session settings that services make by ini_set() when a request first asks for a session, as Symfony 5.4 does, and
 * then never again. The server undoes them after that request, while the service lives on: they are made again.
 *
 * @internal
 */
final class SessionSettings
{
    /** @var array<string, string|null> those before the first request */
    private array $boot;
    /** @var array<string, string> those that a request has changed */
    private array $made = [];

    public function __construct()
    {
        $this->boot = self::current();
    }

    /** At the begin of a request. */
    public function apply(): void
    {
        foreach ($this->made as $name => $value) {
            ini_set($name, $value);
        }
    }

    /** At the end of a request. */
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
        // What session_set_save_handler() has set, ini_set() refuses.
        unset($settings['session.save_handler']);

        return $settings;
    }
}
