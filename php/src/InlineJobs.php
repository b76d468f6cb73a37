<?php

declare(strict_types=1);

namespace Samovar\Runtime;

use Samovar\Job;

/**
 * Runs jobs at once where there is no Samovar server, for development and tests:
 *
 *     Samovar\Runtime\InlineJobs::handlers(['emails' => __DIR__ . '/../jobs/emails.php']);
 *
 * The scripts are those of the `[[queue]]` tables. Under Samovar, the call has no effect.
 */
final class InlineJobs
{
    /** Maximum number of runs of one job. */
    private const RUNS_MAX = 100;

    /** @var array<string, string> */
    private static array $scripts = [];
    /** @var array<string, callable> */
    private static array $handlers = [];
    private static ?string $loading = null;
    private static int $last = 0;

    /** @param array<string, string> $scripts handler scripts by the names of their queues */
    public static function handlers(array $scripts): void
    {
        self::$scripts = $scripts;
        self::$handlers = [];
    }

    /**
     * Takes the handler of the script that is loaded.
     *
     * @internal for Samovar\consume()
     *
     * @throws \Error when no job is run
     */
    public static function consume(callable $handler): void
    {
        if (self::$loading === null) {
            throw new \Error('Samovar\consume() runs jobs of a [[queue]] only');
        }
        self::$handlers[self::$loading] = $handler;
    }

    /**
     * Runs a job up to $attempts times, and returns its number.
     *
     * @internal for Samovar\Queue
     *
     * @throws \RuntimeException when the queue has no handler, or the job fails
     * @throws \TypeError when the payload contains an object or a resource
     */
    public static function run(string $queue, mixed $payload, ?string $key, int $attempts): int
    {
        self::check($payload);
        $handler = self::handler($queue);
        $id = ++self::$last;
        for ($run = $attempt = 1; $run <= self::RUNS_MAX; $run++) {
            $job = Job::make($id, $queue, $attempt, $key, $payload);
            $failure = null;
            try {
                $handler($job);
            } catch (\Exception $failure) {
            }
            [$result, $reason] = Job::resultOf($job);
            if ($result === 'done' || $result === '' && $failure === null) {
                return $id;
            }
            if ($result === 'release') {
                continue;
            }
            $failure ??= new \RuntimeException("The job $id of the queue `$queue` failed: $reason");
            if ($result === 'fail' || $attempt >= $attempts) {
                throw $failure;
            }
            $attempt++;
        }
        throw new \RuntimeException("A job of the queue `$queue` was released " . self::RUNS_MAX . ' times');
    }

    private static function handler(string $queue): callable
    {
        if (isset(self::$handlers[$queue])) {
            return self::$handlers[$queue];
        }
        $script = self::$scripts[$queue] ?? throw new \RuntimeException(
            "The queue `$queue` needs a Samovar server: no job was pushed\n"
            . 'hint: name its handler with Samovar\Runtime\InlineJobs::handlers()',
        );
        $outer = self::$loading;
        self::$loading = $queue;
        try {
            (static function (string $script): void {
                require $script;
            })($script);
        } finally {
            self::$loading = $outer;
        }

        return self::$handlers[$queue]
            ?? throw new \RuntimeException("The handler `$script` does not call Samovar\\consume()");
    }

    private static function check(mixed $payload): void
    {
        if (\is_array($payload)) {
            array_walk($payload, self::check(...));
        } elseif ($payload !== null && !\is_scalar($payload)) {
            $type = get_debug_type($payload);
            throw new \TypeError("The payload of a job contains a value of type $type");
        }
    }
}
