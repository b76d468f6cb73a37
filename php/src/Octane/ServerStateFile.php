<?php

declare(strict_types=1);

namespace Samovar\Runtime\Octane;

/**
 * The file in which octane:start stores the server's process ID, address and control socket for the
 * other commands. It has the same layout as for Octane's other servers.
 */
final class ServerStateFile
{
    public function __construct(private string $path)
    {
    }

    public function path(): string
    {
        return $this->path;
    }

    /** @return array{masterProcessId: int|null, state: array<string, mixed>} */
    public function read(): array
    {
        $text = is_readable($this->path) ? file_get_contents($this->path) : false;
        $read = $text === false ? null : json_decode($text, true);

        return ['masterProcessId' => $read['masterProcessId'] ?? null, 'state' => $read['state'] ?? []];
    }

    /** @throws \RuntimeException when it cannot be written */
    public function writeProcessId(int $masterProcessId): void
    {
        $this->write(['masterProcessId' => $masterProcessId] + $this->read());
    }

    /**
     * @param array<string, mixed> $state
     *
     * @throws \RuntimeException when it cannot be written
     */
    public function writeState(array $state): void
    {
        $this->write(['state' => $state] + $this->read());
    }

    public function delete(): bool
    {
        return is_file($this->path) && @unlink($this->path);
    }

    /** @param array<string, mixed> $all */
    private function write(array $all): void
    {
        $text = json_encode($all, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR);
        // Renamed into place: a concurrent reader finds either the old file or the new one.
        $temporary = $this->path . '.' . getmypid();
        if (@file_put_contents($temporary, $text) === false || !@rename($temporary, $this->path)) {
            throw new \RuntimeException("cannot write the server's state to `{$this->path}`");
        }
    }
}
