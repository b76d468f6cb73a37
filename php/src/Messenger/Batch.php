<?php

declare(strict_types=1);

namespace Samovar\Runtime\Messenger;

use Samovar\Job;

/**
 * The batch of jobs that runs, for the transport and the worker.
 *
 * @internal
 */
final class Batch
{
    /** @var list<Job> jobs that no transport has taken */
    private static array $jobs = [];
    private static ?\Throwable $failure = null;
    private static ?Job $failing = null;
    private static ?Job $retried = null;
    private static bool $hasFailureTransport = false;

    /** @param list<Job> $jobs */
    public static function begin(array $jobs, bool $hasFailureTransport): void
    {
        self::$jobs = $jobs;
        self::$hasFailureTransport = $hasFailureTransport;
        self::$failing = self::$retried = self::$failure = null;
    }

    /** @return list<Job> the jobs of this queue that were not taken before */
    public static function take(string $queue): array
    {
        $taken = array_filter(self::$jobs, static fn (Job $job): bool => $job->queue() === $queue);
        self::$jobs = array_values(array_diff_key(self::$jobs, $taken));

        return array_values($taken);
    }

    /** The handler of this job has thrown; Messenger decides next. */
    public static function fails(Job $job, \Throwable $thrown): void
    {
        self::$failing = $job;
        self::$failure = $thrown;
        self::$retried = null;
    }

    public static function isFailing(Job $job): bool
    {
        return self::$failing === $job;
    }

    public static function setRetried(Job $job): void
    {
        self::$retried = $job;
    }

    public static function isRetried(Job $job): bool
    {
        return self::$retried === $job;
    }

    public static function hasFailureTransport(): bool
    {
        return self::$hasFailureTransport;
    }

    /** Text of the last failure: the exception of the handler, with its stack. */
    public static function reason(): string
    {
        return self::$failure === null ? '' : (string) (self::$failure->getPrevious() ?? self::$failure);
    }
}
