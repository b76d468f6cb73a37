<?php

declare(strict_types=1);

namespace Samovar\Runtime\Octane;

use Symfony\Component\Process\ExecutableFinder;
use Symfony\Component\Process\Process;

/** The program `samovar`: its path, and its commands that end on their own. */
final class Binary
{
    /** `samovar` waits at most 15 minutes for a reload, and a few seconds for other commands. */
    private const TIMEOUT_S = 960.0;

    private function __construct(private string $path)
    {
    }

    /**
     * @param string|null $configured octane.samovar.binary
     * @param string $basePath the application's folder, searched before PATH
     *
     * @throws \RuntimeException when it is not found
     */
    public static function find(?string $configured, string $basePath): self
    {
        if ($configured !== null && $configured !== '') {
            return is_executable($configured) ? new self($configured) : throw new \RuntimeException(
                "cannot run `$configured`\nhint: set `octane.samovar.binary` to an executable file",
            );
        }
        $found = (new ExecutableFinder())->find('samovar', null, [$basePath, "$basePath/vendor/bin"]);

        return $found !== null ? new self($found) : throw new \RuntimeException(
            "cannot find `samovar` in PATH\nhint: install it, or set its path in `octane.samovar.binary`",
        );
    }

    public function path(): string
    {
        return $this->path;
    }

    /** Returns whether a command such as `status` succeeds. */
    public function succeeds(string $command, string $control): bool
    {
        return $this->failure($command, $control) === null;
    }

    /** Runs a command to its end. Returns null on success, otherwise the command's output. */
    public function failure(string $command, string $control): ?string
    {
        $process = new Process([$this->path, $command, '--control', $control], null, null, null, self::TIMEOUT_S);

        return $process->run() === 0 ? null : trim($process->getErrorOutput());
    }
}
