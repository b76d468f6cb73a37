<?php

declare(strict_types=1);

namespace Samovar;

use Samovar\Runtime\InlineJobs;

/**
 * A queue under a SAPI other than Samovar. Jobs run at once, with the handler that
 * Samovar\Runtime\InlineJobs has for it. See php/stubs/jobs.php.
 */
final class Queue
{
    private function __construct(private readonly string $name)
    {
    }

    private function __clone()
    {
    }

    /** @internal for Samovar\queue() */
    public static function make(string $name): self
    {
        return new self($name);
    }

    /**
     * Runs the job, up to $attempts times. $delay, $priority and $uniqueFor have no effect. With
     * $afterResponse, the job runs after the response, unless the request has failed.
     *
     * @throws \RuntimeException when the queue has no handler
     * @throws \Exception when the job fails: the exception of its handler
     */
    public function push(
        mixed $payload,
        float $delay = 0.0,
        ?string $key = null,
        int $priority = 0,
        int $attempts = 0,
        float $uniqueFor = 0.0,
        bool $afterResponse = false,
    ): ?int {
        if ($afterResponse) {
            InlineJobs::defer($this->name, $payload, $key, $attempts);

            return null;
        }

        return InlineJobs::run($this->name, $payload, $key, $attempts);
    }

    /**
     * Runs the jobs one after another. Of the options of single jobs, `key` and `attempts` have an
     * effect.
     */
    public function pushMany(
        array $payloads,
        float $delay = 0.0,
        int $priority = 0,
        int $attempts = 0,
        bool $afterResponse = false,
        array $options = [],
    ): array {
        $ids = [];
        foreach ($payloads as $at => $payload) {
            $own = $options[$at] ?? [];
            $id = $this->push(
                $payload,
                key: $own['key'] ?? null,
                attempts: $own['attempts'] ?? $attempts,
                afterResponse: $afterResponse,
            );
            if (!$afterResponse) {
                $ids[] = $id;
            }
        }

        return $ids;
    }

    /** Returns zeros, because no job waits. */
    public function depth(): array
    {
        return ['ready' => 0, 'delayed' => 0, 'running' => 0];
    }
}
