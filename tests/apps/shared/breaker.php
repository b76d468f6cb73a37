<?php

/* A breaker around a call with a given end. index.php uses it. */

declare(strict_types=1);

use Samovar\Breaker;
use Samovar\BreakerOpenException;

/** Opens after four calls if half of them failed, and tries again after a tenth of a second. */
function breaker(string $name): Breaker
{
    return new Breaker($name, failures: 0.5, minimum: 4, window: 60.0, pause: 0.1);
}

/** Makes one call that ends in the given way, and returns the result. */
function call(Breaker $breaker, string $end): string
{
    $call = fn (): string => match ($end) {
        'well' => 'well',
        'exit' => exit(json_encode(['exit', $breaker->state()])),
        'answer' => throw new \DomainException('no such order'),
        'fatal' => (function (): string {
            ini_set('memory_limit', '4M');

            return str_repeat('x', 1 << 30);
        })(),
        'death' => (string) posix_kill(getmypid(), SIGKILL),
        default => throw new \RuntimeException('down'),
    };
    try {
        return $breaker->call($call, answers: [\DomainException::class, 'No\Such\Class']);
    } catch (BreakerOpenException $open) {
        return $open->retryAfter > 0.0 && $open->retryAfter <= 0.1 ? 'refused' : "refused for $open->retryAfter";
    } catch (\Exception $thrown) {
        return $thrown->getMessage();
    }
}

/** Makes the calls of one request, one after another, including invalid ones. */
function breaks(): array
{
    $breaker = breaker('sequence');
    $breaker->reset();
    $calls = fn (string ...$ends): array => array_map(fn (string $end): string => call($breaker, $end), $ends);
    $after_pause = function () use ($breaker): string {
        usleep(110_000);

        return $breaker->state();
    };

    return [
        'closed' => [$calls('well', 'down', 'answer'), $breaker->state()],
        'opens' => [$calls('down', 'well'), $breaker->state()],
        'otherwise' => $breaker->call(fn () => 'called', fn () => 'stood in'),
        'probe fails' => [$after_pause(), $calls('down', 'well')],
        'probe is well' => [$after_pause(), $calls('well', 'down', 'well'), $breaker->state()],
        'nested' => $breaker->call(fn () => $breaker->call(fn () => 'inner') . ' and outer'),
        'arguments' => thrown(fn () => $breaker->call('no_such_function')),
        'other rules' => thrown(fn () => new Breaker('sequence', failures: 0.9)),
        'no share' => thrown(fn () => new Breaker('none', failures: 0.0)),
        'no slow share' => thrown(fn () => new Breaker('none', slow: NAN)),
        'no time' => thrown(fn () => new Breaker('none', slowAfter: -1.0)),
        'no calls' => thrown(fn () => new Breaker('none', minimum: 0)),
        'no window' => thrown(fn () => new Breaker('none', window: 0.0)),
        'no pause' => thrown(fn () => new Breaker('none', pause: INF)),
        'no name' => thrown(fn () => new Breaker('')),
        'clone' => thrown(fn () => clone $breaker),
        'slow' => (function (): array {
            $slow = new Breaker('slow', slow: 0.5, slowAfter: 0.001, minimum: 1);
            $slow->reset();

            return [$slow->call(fn () => usleep(2000) ?? 'late'), $slow->state(), $slow->reset(), $slow->state()];
        })(),
    ];
}
