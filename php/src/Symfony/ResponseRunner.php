<?php

declare(strict_types=1);

namespace Samovar\Runtime\Symfony;

use Samovar\Runtime\Cycle;
use Samovar\Runtime\Sapi;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\Runtime\RunnerInterface;

/**
 * Runs an application that is a response. The response created at the boot only warms the
 * application up. Each request creates its own.
 */
final class ResponseRunner implements RunnerInterface
{
    private bool $isRehearsal;

    /** @param \Closure(): ?object|null $remake creates the application again */
    public function __construct(private Cycle $cycle, private Response $response, private ?\Closure $remake)
    {
        $this->isRehearsal = Sapi::boots();
    }

    public function run(): int
    {
        $this->cycle->run(function (): void {
            $response = $this->isRehearsal && $this->remake !== null ? ($this->remake)() : $this->response;
            $response->send();
        });

        return 0;
    }
}
