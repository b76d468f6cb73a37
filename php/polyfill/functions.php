<?php

declare(strict_types=1);

/*
 * What Samovar offers to PHP code, for every other SAPI: the same front controller runs under php-fpm, `php -S`
 * and the command line. Signatures are those of php/stubs/samovar.php; the classes are beside this file.
 */

namespace Samovar;

use Samovar\Runtime\Polyfill;
use Samovar\Runtime\Published;

if (!\function_exists(__NAMESPACE__ . '\serve')) {
    /**
     * Answers the current request with $handler and returns: a worker script is an ordinary front controller here.
     *
     * An exception that leaves $handler is thrown on, so that PHP reports it and answers 500.
     *
     * @param callable(): (string|Response|null)|callable(Request): (string|Response|null) $handler
     * @param int $rollbackEvery means nothing here: no state outlives the request
     *
     * @throws \Error when called from within a handler, and on the command line, where there is no request
     * @throws \TypeError when $handler returns something else
     * @throws \ValueError when $rollbackEvery is negative
     */
    function serve(callable $handler, int $rollbackEvery = 0): void
    {
        Polyfill::serve($handler, $rollbackEvery);
    }
}

if (!\function_exists(__NAMESPACE__ . '\checkpoint')) {
    /**
     * Calls $resume and does nothing else: the whole script runs for each request.
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
     * Does nothing: no connection outlives its request.
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
     * @throws \TypeError when there is an object or resource in it
     * @throws \ValueError when the name has no bytes or more than 256, or arrays are nested too deep
     */
    function publish(string $name, mixed $value): void
    {
        Published::publish($name, $value);
    }

    /** A published value, or null when there is none. */
    function published(string $name): mixed
    {
        return Published::get($name);
    }
}

if (!\function_exists(__NAMESPACE__ . '\extend_deadline')) {
    /**
     * Does nothing: nobody here can be asked for more time.
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
     * Does nothing, and $work is not called: nobody would profit from it.
     *
     * @param callable(): mixed $work
     */
    function warmup(callable $work): void
    {
    }
}

if (!\function_exists(__NAMESPACE__ . '\route')) {
    /** Does nothing: nobody adds up by route. */
    function route(string $name): void
    {
    }
}

if (!\function_exists(__NAMESPACE__ . '\trace_next')) {
    /** Does nothing: nobody traces. */
    function trace_next(): bool
    {
        return false;
    }
}

if (!\function_exists(__NAMESPACE__ . '\timer')) {
    /**
     * A timer that measures nothing.
     *
     * @param non-empty-array<string, scalar|null> $tags
     *
     * @throws \ValueError when there is no tag, or one without a name
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
     * Runs $tasks one after another: here nothing goes on while something waits.
     *
     * @param array<array-key, callable(): mixed> $tasks
     * @param float|null $timeout seconds; looked at between two tasks
     *
     * @return array<array-key, mixed>
     *
     * @throws TimeoutException when $timeout is over
     */
    function parallel(array $tasks, ?float $timeout = null): array
    {
        $from = microtime(true);
        $results = [];
        foreach ($tasks as $key => $task) {
            $results[$key] = $task();
            if ($timeout !== null && microtime(true) - $from > $timeout) {
                throw new TimeoutException('The tasks have not ended in the time that they were given');
            }
        }

        return $results;
    }
}

if (!\function_exists(__NAMESPACE__ . '\async')) {
    /**
     * Calls $work at once, and as a whole.
     */
    function async(callable $work): Task
    {
        return Task::run($work);
    }
}

if (!\function_exists(__NAMESPACE__ . '\first')) {
    /**
     * What the first of $tasks returns that returns at all; the others are not called.
     *
     * @param non-empty-array<callable(): mixed> $tasks
     *
     * @throws \ValueError when there are none
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
    /**
     * @throws \ValueError when $seconds is negative or no number
     */
    function delay(float $seconds): void
    {
        if (!($seconds >= 0)) {
            $least = 'must be greater than or equal to 0';
            throw new \ValueError("Samovar\delay(): Argument #1 (\$seconds) $least");
        }
        usleep((int) ($seconds * 1e6));
    }
}
