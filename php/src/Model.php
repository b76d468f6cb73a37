<?php

declare(strict_types=1);

namespace Samovar\Runtime;

/** What becomes of an application between two requests. */
enum Model: string
{
    /** It returns to where it stood when it had booted. */
    case Checkpoint = 'checkpoint';
    /** It lives on, and resets what it knows to reset. */
    case Resident = 'resident';

    private const NAME = 'SAMOVAR_MODEL';

    /**
     * The one that $option names, else the one that SAMOVAR_MODEL names, else checkpoint.
     *
     * @throws \InvalidArgumentException when it is neither
     */
    public static function chosen(self|string|null $option): self
    {
        // The server keeps its own variables, SAMOVAR_*, from PHP: APP_SAMOVAR_MODEL comes through.
        $app = 'APP_' . self::NAME;
        $named = $option ?? $_SERVER[self::NAME] ?? $_ENV[self::NAME] ?? (getenv(self::NAME) ?: null)
            ?? $_SERVER[$app] ?? $_ENV[$app] ?? (getenv($app) ?: self::Checkpoint);

        return $named instanceof self ? $named : self::tryFrom($named) ?? throw new \InvalidArgumentException(
            "the model `$named` does not exist\nhint: " . self::NAME . ' is "checkpoint" or "resident"',
        );
    }
}
