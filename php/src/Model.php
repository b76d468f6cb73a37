<?php

declare(strict_types=1);

namespace Samovar\Runtime;

/** Handling of the application's state between two requests. */
enum Model: string
{
    /** Rolls the application back to its state after the boot. */
    case Checkpoint = 'checkpoint';
    /** Keeps the application's state, except for the parts that it resets. */
    case Resident = 'resident';

    private const NAME = 'SAMOVAR_MODEL';

    /**
     * Returns the model that $option specifies, otherwise the one of SAMOVAR_MODEL, otherwise
     * checkpoint.
     *
     * @throws \InvalidArgumentException when the name is neither model
     */
    public static function chosen(self|string|null $option): self
    {
        // The server hides its own variables, SAMOVAR_*, from PHP. APP_SAMOVAR_MODEL is visible.
        $app = 'APP_' . self::NAME;
        $named = $option ?? $_SERVER[self::NAME] ?? $_ENV[self::NAME] ?? (getenv(self::NAME) ?: null)
            ?? $_SERVER[$app] ?? $_ENV[$app] ?? (getenv($app) ?: self::Checkpoint);

        return $named instanceof self ? $named : self::tryFrom($named) ?? throw new \InvalidArgumentException(
            "unknown model `$named`\nhint: set " . self::NAME . ' to "checkpoint" or "resident"',
        );
    }
}
