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

    /** @throws NotAvailable when the program has no such command */
    public function reloadServer(): void
    {
        $control = $this->control();
        if ($control === null || !$this->canReload() || !($this->binary)()->succeeds('reload', $control)) {
            throw NotAvailable::reload();
        }
    }

    public function canReload(): bool
    {
        return ($this->binary)()->has('reload');
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
