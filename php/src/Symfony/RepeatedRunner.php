<?php

declare(strict_types=1);

namespace Samovar\Runtime\Symfony;

use Samovar\Runtime\Cycle;
use Symfony\Component\Runtime\RunnerInterface;

/** Runs an application that is a callable, which is called for each request. */
final class RepeatedRunner implements RunnerInterface
{
    private int $status = 0;

    /** @param RunnerInterface $once the runner of one call */
    public function __construct(private Cycle $cycle, private RunnerInterface $once)
    {
    }

    public function run(): int
    {
        $this->cycle->run(function (): void {
            $this->status = $this->once->run();
        });

        return $this->status;
    }
}
