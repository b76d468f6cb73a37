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
    /** @var list<array{string, mixed, ?string, int}> */
    private static array $deferred = [];
    private static bool $isRegistered = false;

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

    /**
     * Keeps a job until finish().
     *
     * @internal for Samovar\Queue
     *
     * @throws \TypeError when the payload contains an object or a resource
     */
    public static function defer(string $queue, mixed $payload, ?string $key, int $attempts): void
    {
        self::check($payload);
        self::$deferred[] = [$queue, $payload, $key, $attempts];
        if (!self::$isRegistered) {
            self::$isRegistered = true;
            register_shutdown_function(self::finish(...));
        }
    }

    /**
     * Runs the jobs that were pushed with `afterResponse`, or drops them if the request has failed:
     * its status is 500 or above, or a fatal error has ended it. Called at the end of the request.
     */
    public static function finish(): void
    {
        [$jobs, self::$deferred] = [self::$deferred, []];
        self::$isRegistered = false;
        $fatal = E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR;
        $hasFailed = ((error_get_last()['type'] ?? 0) & $fatal) !== 0;
        if ($jobs === [] || $hasFailed || (int) http_response_code() >= 500) {
            return;
        }
        if (\function_exists('fastcgi_finish_request')) {
            fastcgi_finish_request();
        }
        foreach ($jobs as [$queue, $payload, $key, $attempts]) {
            try {
                self::run($queue, $payload, $key, $attempts);
            } catch (\Exception $failure) {
                error_log("A job of the queue `$queue` failed: $failure");
            }
        }
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
