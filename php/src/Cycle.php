<?php

declare(strict_types=1);

namespace Samovar\Runtime;

/**
 * boot → requests, in either model: an application is booted once, then it answers with superglobals, request by
 * request. Where the server runs the script whole, and under another SAPI, that is the one request of the script.
 *
 * @internal
 */
final class Cycle
{
    /** Whether the script goes on with a request: then it can be no other's. */
    private bool $isInRequest = false;

    /** @param BootState $state made before the boot began */
    public function __construct(private Model $model, private BootState $state)
    {
    }

    public function model(): Model
    {
        return $this->model;
    }

    /**
     * Calls $work if the application boots, output and session aside.
     *
     * @param \Closure(): void $work
     */
    public function warmUp(\Closure $work): void
    {
        if (Sapi::boots()) {
            \Samovar\warmup($work);
        }
    }

    /** The script goes on with a request. */
    public function checkpoint(): void
    {
        $boots = Sapi::boots();
        $this->state->keep();
        \Samovar\checkpoint();
        if ($boots) {
            $this->state->apply();
        }
        $this->isInRequest = true;
    }

    /**
     * Answers the requests: all of this process in the resident model, else one.
     *
     * @param \Closure(): void $answer answers the request that the superglobals tell of
     * @param \Closure(): void|null $reset lets the application forget that request, in the resident model
     */
    public function run(\Closure $answer, ?\Closure $reset = null): void
    {
        // An application that was made of the request has met the checkpoint already.
        if ($this->model === Model::Checkpoint || $this->isInRequest) {
            $this->checkpoint();
            $answer();

            return;
        }
        $session = new SessionSettings();
        $this->serve(static function () use ($answer, $reset, $session): void {
            $session->apply();
            try {
                $answer();
            } finally {
                $session->keep();
                $reset === null || $reset();
            }
        });
    }

    /**
     * Samovar\serve() with the boot's $_SERVER and $_ENV.
     *
     * @param callable(): mixed|callable(\Samovar\Request): mixed $handler
     */
    public function serve(callable $handler, int $rollbackEvery = 0): void
    {
        $state = Sapi::boots() ? $this->state : null;
        $this->state->keep();
        $wantsRequest = (new \ReflectionFunction($handler(...)))->getNumberOfParameters() > 0;
        \Samovar\serve(
            $wantsRequest
                ? static function (\Samovar\Request $request) use ($handler, $state): mixed {
                    $state?->apply();

                    return $handler($request);
                }
                : static function () use ($handler, $state): mixed {
                    $state?->apply();

                    return $handler();
                },
            $rollbackEvery,
        );
    }
}
