<?php

declare(strict_types=1);

namespace Samovar\Runtime\Octane;

use Laravel\Octane\Contracts\ServerProcessInspector as ServerProcessInspectorContract;

/** Asks the running server over its control socket, by the commands of `samovar`. */
final class ServerProcessInspector implements ServerProcessInspectorContract
{
    /** @param \Closure(): Binary $binary finds the program when it is needed */
    public function __construct(private ServerStateFile $state, private \Closure $binary)
    {
    }

    public function serverIsRunning(): bool
    {
        $control = $this->control();

        return $control !== null && file_exists($control) && ($this->binary)()->succeeds('status', $control);
    }

    /**
     * Comes back when the application has booted anew, and answers.
     *
     * @throws \RuntimeException when it has not, with the server's reasons; then the old one goes on
     */
    public function reloadServer(): void
    {
        $control = $this->control();
        $why = $control === null ? 'it does not run' : ($this->binary)()->failure('reload', $control);
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
