<?php

declare(strict_types=1);

namespace Samovar\Runtime\Octane;

use Laravel\Octane\Contracts\ServerProcessInspector as ServerProcessInspectorContract;

/** Queries the running server through its control socket, with the commands of `samovar`. */
final class ServerProcessInspector implements ServerProcessInspectorContract
{
    /** @param \Closure(): Binary $binary finds the program on demand */
    public function __construct(private ServerStateFile $state, private \Closure $binary)
    {
    }

    public function serverIsRunning(): bool
    {
        $control = $this->control();

        return $control !== null && file_exists($control) && ($this->binary)()->succeeds('status', $control);
    }

    /**
     * Returns when the reloaded application has booted and handles requests.
     *
     * @throws \RuntimeException with the server's reasons when it does not boot; the old one then
     * continues
     */
    public function reloadServer(): void
    {
        $control = $this->control();
        $why = $control === null ? 'the server is not running' : ($this->binary)()->failure('reload', $control);
        if ($why !== null) {
            throw new \RuntimeException($why);
        }
    }

    public function stopServer(): bool
    {
        $control = $this->control();

        return $control !== null && ($this->binary)()->succeeds('stop', $control);
    }

    private function control(): ?string
    {
        return $this->state->read()['state']['control'] ?? null;
    }
}
