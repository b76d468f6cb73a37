<?php

declare(strict_types=1);

namespace Samovar\Runtime\Octane;

use Symfony\Component\Process\ExecutableFinder;
use Symfony\Component\Process\Process;

/** The program `samovar`: where it is, and its commands that end by themselves. */
final class Binary
{
    /** `samovar` itself waits for a reload for 15 minutes at most, for all else for seconds. */
    private const TIMEOUT_S = 960.0;

    private function __construct(private string $path)
    {
    }

    /**
     * @param string|null $configured octane.samovar.binary
     * @param string $basePath the application's folder, looked into before PATH
     *
     * @throws \RuntimeException when it is nowhere
     */
    public static function find(?string $configured, string $basePath): self
    {
        if ($configured !== null && $configured !== '') {
            return is_executable($configured) ? new self($configured) : throw new \RuntimeException(
                "`octane.samovar.binary` names `$configured`, which cannot be run",
            );
        }
        $found = (new ExecutableFinder())->find('samovar', null, [$basePath, "$basePath/vendor/bin"]);

        return $found !== null ? new self($found) : throw new \RuntimeException(
            "`samovar` is not on PATH\nhint: install it, or say where it is in `octane.samovar.binary`",
        );
    }

    public function path(): string
    {
        return $this->path;
    }

    /** Whether a command such as `status` succeeds. */
    public function succeeds(string $command, string $control): bool
    {
        return $this->failure($command, $control) === null;
    }

    /** Runs a command to its end. Null: it has succeeded; else what it says. */
    public function failure(string $command, string $control): ?string
    {
        $process = new Process([$this->path, $command, '--control', $control], null, null, null, self::TIMEOUT_S);

        return $process->run() === 0 ? null : trim($process->getErrorOutput());
    }
}
