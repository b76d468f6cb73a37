<?php

declare(strict_types=1);

namespace Samovar;

/**
 * A circuit breaker under a SAPI other than Samovar. It counts only the calls of this process. See
 * php/stubs/shared.php.
 */
final class Breaker
{
    private const NAME_BYTES_MAX = 256;
    private const SECONDS = [0.1, 86_400.0];
    private const CALLS_MAX = 10_000;

    /**
     * @var array<string, array{
     *     definition: string, state: string, until: float, calls: list<array{float, bool, bool}>
     * }> until when it is open or half open; when each call ended, whether it failed and was slow
     */
    private static array $breakers = [];

    public function __construct(
        private string $name,
        private float $failures = 0.5,
        private float $slow = 1.0,
        private float $slowAfter = 0.0,
        private int $minimum = 10,
        private float $window = 10.0,
        private float $pause = 5.0,
    ) {
        $bytes = \strlen($name);
        $wrong = match (true) {
            $bytes < 1 || $bytes > self::NAME_BYTES_MAX => "the name of a shared object has 1 to 256 bytes, not $bytes",
            !($failures > 0 && $failures <= 1) =>
                "a breaker's share of failed calls is more than 0 and at most 1, not $failures",
            !($slow > 0 && $slow <= 1) => "a breaker's share of slow calls is more than 0 and at most 1, not $slow",
            !($slowAfter >= 0 && $slowAfter <= self::SECONDS[1]) =>
                "the time after which a call of a breaker is slow is 0 to 86400 seconds, not $slowAfter",
            $minimum < 1 || $minimum > self::CALLS_MAX => "the minimum of a breaker is 1 to 10000 calls, not $minimum",
            !self::isTime($window) => "a breaker's window is 0.1 to 86400 seconds, not $window",
            !self::isTime($pause) => "a breaker's pause is 0.1 to 86400 seconds, not $pause",
            default => null,
        };
        if ($wrong !== null) {
            throw new \ValueError($wrong);
        }
        $definition = "failures=$failures slow=$slow slowAfter=$slowAfter minimum=$minimum pause=$pause window=$window";
        self::$breakers[$name] ??= ['definition' => $definition, 'state' => 'closed', 'until' => 0.0, 'calls' => []];
        $found = self::$breakers[$name]['definition'];
        if ($found !== $definition) {
            throw new \Error("the breaker `$name` exists as `$found`, and cannot be `$definition` too");
        }
    }

    private function __clone()
    {
    }

    public function __serialize(): array
    {
        throw new \Exception("Serialization of 'Samovar\\Breaker' is not allowed");
    }

    public function call(callable $call, ?callable $otherwise = null, array $answers = []): mixed
    {
        $begun = self::now();
        $is_probe = $this->state() !== 'closed';
        $left = self::$breakers[$this->name]['until'] - $begun;
        if ($is_probe && $left > 0) {
            return $otherwise !== null ? $otherwise() : throw $this->refusal($left);
        }
        if ($is_probe) {
            $this->become('half-open');
        }
        try {
            $returned = $call();
        } catch (\Throwable $thrown) {
            $is_answer = array_filter($answers, fn (string $class): bool => $thrown instanceof $class) !== [];
            $this->report($begun, !$is_answer, $is_probe);

            throw $thrown;
        }
        $this->report($begun, false, $is_probe);

        return $returned;
    }

    public function state(): string
    {
        return self::$breakers[$this->name]['state'];
    }

    public function reset(): void
    {
        $this->become('closed');
        self::$breakers[$this->name]['calls'] = [];
    }

    private function report(float $begun, bool $has_failed, bool $is_probe): void
    {
        $now = self::now();
        $is_slow = $this->slowAfter > 0 && $now - $begun >= $this->slowAfter;
        if ($is_probe) {
            $has_failed || $is_slow ? $this->become('open') : $this->reset();

            return;
        }
        $calls = &self::$breakers[$this->name]['calls'];
        $calls[] = [$now, $has_failed, $is_slow];
        $calls = array_values(array_filter($calls, fn (array $call): bool => $call[0] > $now - $this->window));
        $share = fn (int $what): float => array_sum(array_column($calls, $what)) / \count($calls);
        $is_too_bad = $share(1) >= $this->failures || $share(2) >= $this->slow;
        if (\count($calls) >= $this->minimum && $is_too_bad) {
            $this->become('open');
        }
    }

    private function become(string $state): void
    {
        self::$breakers[$this->name]['state'] = $state;
        self::$breakers[$this->name]['until'] = $state === 'closed' ? 0.0 : self::now() + $this->pause;
    }

    private function refusal(float $seconds): BreakerOpenException
    {
        $refusal = new BreakerOpenException(sprintf(
            'The breaker is open, and allows the next call in %.1f seconds',
            $seconds,
        ));
        $refusal->retryAfter = $seconds;

        return $refusal;
    }

    private static function isTime(float $seconds): bool
    {
        return $seconds >= self::SECONDS[0] && $seconds <= self::SECONDS[1];
    }

    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}
