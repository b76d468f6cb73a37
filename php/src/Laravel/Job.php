<?php

declare(strict_types=1);

namespace Samovar\Runtime\Laravel;

use Illuminate\Container\Container;
use Illuminate\Contracts\Queue\Job as JobContract;
use Illuminate\Queue\Jobs\Job as BaseJob;
use Samovar\Job as Native;

/** A job of the batch that runs, for Laravel's worker. */
final class Job extends BaseJob implements JobContract
{
    private ?\Throwable $thrown = null;

    /** @param bool $isKept whether the server keeps the job when it has failed */
    public function __construct(
        Container $container,
        string $connectionName,
        private Native $native,
        private bool $isKept,
    ) {
        $this->container = $container;
        $this->connectionName = $connectionName;
        $this->queue = $native->queue();
    }

    public function getJobId(): string
    {
        return (string) $this->native->id();
    }

    public function getRawBody(): string
    {
        return (string) $this->native->payload();
    }

    public function attempts(): int
    {
        return $this->native->attempt();
    }

    /** @param int $delay seconds */
    public function release($delay = 0): void
    {
        parent::release($delay);
        $this->native->retry((float) max(0, $delay), $this->reason());
    }

    public function delete(): void
    {
        parent::delete();
        if ($this->hasFailed() && $this->isKept) {
            $this->native->fail($this->reason());
        } else {
            $this->native->done();
        }
    }

    /** @param \Throwable|null $e */
    public function fail($e = null): void
    {
        $this->thrown = $e;
        parent::fail($e);
    }

    /** Sets the reason of a retry. */
    public function setThrown(\Throwable $thrown): void
    {
        $this->thrown = $thrown;
    }

    private function reason(): string
    {
        return $this->thrown === null ? '' : (string) $this->thrown;
    }
}
