<?php

declare(strict_types=1);

namespace Samovar\Runtime;

/**
 * boot → requests, in either model: the application boots once and then handles request after
 * request from the superglobals. Where the server runs the whole script, and under another SAPI, it
 * handles the one request of the script.
 *
 * @internal
 */
final class Cycle
{
    /** Whether the script is already handling a request. It can then handle no other one. */
    private bool $isInRequest = false;

    public function __construct(private Model $model)
    {
    }

    public function model(): Model
    {
        return $this->model;
    }

    /**
     * Calls $work if the application is booting. Output and session are discarded.
     *
     * @param \Closure(): void $work
     */
    public function warmUp(\Closure $work): void
    {
        if (Sapi::boots()) {
            \Samovar\warmup($work);
        }
    }

    /** Sets the checkpoint. The code after it handles a request. */
    public function checkpoint(): void
    {
        \Samovar\checkpoint();
        $this->isInRequest = true;
    }

    /**
     * Handles requests: all requests of this process in the resident model, otherwise one.
     *
     * @param \Closure(): void $answer handles the request in the superglobals
     * @param \Closure(): void|null $reset resets the application after a request, in the resident
     * model
     */
    public function run(\Closure $answer, ?\Closure $reset = null): void
    {
        // An application that was created from the request is already below the checkpoint.
        if ($this->model === Model::Checkpoint || $this->isInRequest) {
            $this->checkpoint();
            $answer();

            return;
        }
        $session = new SessionSettings();
        \Samovar\serve(static function () use ($answer, $reset, $session): void {
            $session->apply();
            try {
                $answer();
            } finally {
                $session->keep();
                $reset === null || $reset();
            }
        });
    }
}
