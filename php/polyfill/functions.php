<?php

declare(strict_types=1);

/*
 * The functions that Samovar provides to PHP code, for every other SAPI. The same front controller
 * runs under php-fpm, `php -S` and the command line. Signatures are those of php/stubs. The classes
 * are in this folder.
 */

namespace Samovar;

use Samovar\Runtime\InlineJobs;
use Samovar\Runtime\Polyfill;
use Samovar\Runtime\Published;

if (!\function_exists(__NAMESPACE__ . '\serve')) {
    /**
     * Calls $handler for the current request and returns. A worker script works as an ordinary
     * front controller.
     *
     * An exception that leaves $handler is rethrown, so that PHP reports it and responds with 500.
     *
     * @param callable(): (string|Response|null)|callable(Request): (string|Response|null) $handler
     * @param int $rollbackEvery has no effect here: no state outlives the request
     *
     * @throws \Error when called from within a handler, and on the command line, where there is no
     * request
     * @throws \TypeError when $handler returns another type
     * @throws \ValueError when $rollbackEvery is negative
     */
    function serve(callable $handler, int $rollbackEvery = 0): void
    {
        Polyfill::serve($handler, $rollbackEvery);
    }
}

if (!\function_exists(__NAMESPACE__ . '\checkpoint')) {
    /**
     * Only calls $resume: the whole script runs for each request.
     *
     * @param (callable(): mixed)|null $resume
     */
    function checkpoint(?callable $resume = null): void
    {
        if ($resume !== null) {
            $resume();
        }
    }
}

if (!\function_exists(__NAMESPACE__ . '\kept')) {
    /**
     * Does nothing, because no connection outlives its request.
     *
     * @param resource|\Socket $stream
     */
    function kept(mixed $stream): bool
    {
        return false;
    }
}

if (!\function_exists(__NAMESPACE__ . '\publish')) {
    /**
     * Publishes a value for the rest of this process's request.
     *
     * @throws \TypeError when the value contains an object or resource
     * @throws \ValueError when the name is empty or longer than 256 bytes, or arrays are too deeply
     * nested
     */
    function publish(string $name, mixed $value): void
    {
        Published::publish($name, $value);
    }

    /** Returns a published value, or null when there is none. */
    function published(string $name): mixed
    {
        return Published::get($name);
    }
}

if (!\function_exists(__NAMESPACE__ . '\extend_deadline')) {
    /**
     * Does nothing, because there are no server timeouts to extend.
     *
     * @throws \ValueError when $seconds is less than 1
     */
    function extend_deadline(int $seconds): int
    {
        if ($seconds < 1) {
            $message = __FUNCTION__ . '(): Argument #1 ($seconds) must be greater than 0';
            throw new \ValueError($message);
        }
        return 0;
    }
}

if (!\function_exists(__NAMESPACE__ . '\warmup')) {
    /**
     * Does nothing, and does not call $work: there is no boot to prepare.
     *
     * @param callable(): mixed $work
     */
    function warmup(callable $work): void
    {
    }
}

if (!\function_exists(__NAMESPACE__ . '\route')) {
    /** Does nothing, because there are no statistics by route. */
    function route(string $name): void
    {
    }
}

if (!\function_exists(__NAMESPACE__ . '\report_exception')) {
    /** Does nothing, because there is no page of errors. */
    function report_exception(\Throwable $exception): void
    {
    }
}

if (!\function_exists(__NAMESPACE__ . '\trace_next')) {
    /** Does nothing, because there is no tracer. */
    function trace_next(): bool
    {
        return false;
    }
}

if (!\function_exists(__NAMESPACE__ . '\timer')) {
    /**
     * Creates a timer that measures nothing.
     *
     * @param non-empty-array<string, scalar|null> $tags
     *
     * @throws \ValueError when there is no tag, or a tag has no name
     * @throws \TypeError when a tag's value is an array, an object or a resource
     */
    function timer(array $tags): Timer
    {
        $names = array_filter(array_keys($tags), fn (int|string $name): bool => \is_string($name) && $name !== '');
        if ($tags === [] || \count($names) < \count($tags)) {
            throw new \ValueError('Samovar\timer(): Argument #1 ($tags) ' . ($tags === []
                ? 'cannot be empty'
                : 'must have a name for each tag'));
        }
        foreach ($tags as $value) {
            if ($value !== null && !\is_scalar($value)) {
                throw new \TypeError(
                    'Samovar\timer(): Argument #1 ($tags) must have values that are strings, numbers, booleans or null',
                );
            }
        }

        return Timer::make();
    }
}

if (!\function_exists(__NAMESPACE__ . '\parallel')) {
    /**
     * Runs $tasks one after another. No task continues while another one waits.
     *
     * @param array<array-key, callable(): mixed> $tasks
     * @param float|null $timeout seconds; checked between two tasks
     *
     * @return array<array-key, mixed>
     *
     * @throws TimeoutException when $timeout expires
     */
    function parallel(array $tasks, ?float $timeout = null): array
    {
        $from = microtime(true);
        $results = [];
        foreach ($tasks as $key => $task) {
            $results[$key] = $task();
            if ($timeout !== null && microtime(true) - $from > $timeout) {
                throw new TimeoutException('The tasks did not end within their timeout');
            }
        }

        return $results;
    }
}

if (!\function_exists(__NAMESPACE__ . '\async')) {
    /** Runs $work to its end immediately. */
    function async(callable $work): Task
    {
        return Task::run($work);
    }
}

if (!\function_exists(__NAMESPACE__ . '\first')) {
    /**
     * Returns the result of the first task that returns. Later tasks are not called.
     *
     * @param non-empty-array<callable(): mixed> $tasks
     *
     * @throws \ValueError when $tasks is empty
     */
    function first(array $tasks, ?float $timeout = null): mixed
    {
        $thrown = null;
        foreach ($tasks as $task) {
            try {
                return $task();
            } catch (\Throwable $e) {
                $thrown ??= $e;
            }
        }
        throw $thrown ?? new \ValueError('Samovar\first(): Argument #1 ($tasks) cannot be empty');
    }
}

if (!\function_exists(__NAMESPACE__ . '\delay')) {
    /** @throws \ValueError when $seconds is negative or not a number */
    function delay(float $seconds): void
    {
        if (!($seconds >= 0)) {
            $least = 'must be greater than or equal to 0';
            throw new \ValueError("Samovar\delay(): Argument #1 (\$seconds) $least");
        }
        usleep((int) ($seconds * 1e6));
    }
}

if (!\function_exists(__NAMESPACE__ . '\queue')) {
    /** Returns a queue whose jobs run at once, with Samovar\Runtime\InlineJobs. */
    function queue(string $name): Queue
    {
        return Queue::make($name);
    }
}

if (!\function_exists(__NAMESPACE__ . '\consume')) {
    /**
     * Takes the handler of a script that Samovar\Runtime\InlineJobs loads.
     *
     * @throws \Error when it does not load this script
     */
    function consume(callable $handler): void
    {
        InlineJobs::consume($handler);
    }
}
