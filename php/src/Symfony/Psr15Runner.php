<?php

declare(strict_types=1);

namespace Samovar\Runtime\Symfony;

use Psr\Http\Server\RequestHandlerInterface;
use Samovar\Runtime\Cycle;
use Samovar\Runtime\Model;
use Samovar\Runtime\Psr15\Runner;
use Samovar\Runtime\Psr7\ServerRequest;
use Symfony\Component\Runtime\RunnerInterface;

/** Runs a PSR-15 handler. In the checkpoint model it is rolled back after each request. */
final class Psr15Runner implements RunnerInterface
{
    /**
     * @param list<string> $warmup targets; changes that they make to the handler's services persist
     */
    public function __construct(
        private Cycle $cycle,
        private RequestHandlerInterface $handler,
        private array $warmup,
    ) {
    }

    public function run(): int
    {
        if ($this->warmup !== []) {
            $this->cycle->warmUp(function (): void {
                foreach ($this->warmup as $target) {
                    $uri = str_starts_with($target, '/') ? "http://localhost$target" : $target;
                    (string) $this->handler->handle(ServerRequest::of('GET', $uri, $_SERVER))->getBody();
                }
            });
        }
        \Samovar\serve(
            (new Runner($this->handler))->answer(...),
            $this->cycle->model() === Model::Checkpoint ? 1 : 0,
        );

        return 0;
    }
}
