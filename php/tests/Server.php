<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests;

/** A server on a free loopback port: Samovar, or PHP's built-in server. */
final class Server
{
    private const WATCHDOG_S = 30;

    /** @var resource */
    private $process;
    private string $url = '';
    private string $log;
    private string $control;

    /** @param list<string> $command */
    private function __construct(array $command, array $environment, string $control = '')
    {
        $this->control = $control;
        $this->log = tempnam(sys_get_temp_dir(), 'samovar-log-');
        $out = ['file', $this->log, 'a'];
        $this->process = proc_open($command, [1 => $out, 2 => $out], $pipes, null, $environment + getenv());
        $until = microtime(true) + self::WATCHDOG_S;
        while (preg_match('#http://[0-9.:]+#', $this->log(), $found) !== 1) {
            if (microtime(true) > $until || !proc_get_status($this->process)['running']) {
                throw new \RuntimeException("the server did not start:\n" . $this->log());
            }
            usleep(10_000);
        }
        $this->url = $found[0];
    }

    /** Returns the path of Samovar's program, or null if it was not built. */
    public static function samovar(): ?string
    {
        $path = getenv('SAMOVAR_BINARY') ?: \dirname(__DIR__, 2) . '/target/release/samovar';

        return is_executable($path) ? $path : null;
    }

    /**
     * @param array<string, string> $environment
     * @param list<string> $arguments additional arguments of `samovar serve`
     */
    public static function serving(string $script, array $environment = [], array $arguments = []): self
    {
        $control = sys_get_temp_dir() . '/samovar-test-' . getmypid() . '-' . bin2hex(random_bytes(4)) . '.sock';
        $command = [
            self::samovar(), 'serve', $script, '--listen', '127.0.0.1:0', '--workers', '1', '--control', $control,
        ];
        if (\function_exists('posix_geteuid') && posix_geteuid() === 0) {
            $command[] = '--allow-root';
        }

        return new self([...$command, ...$arguments], $environment, $control);
    }

    /** @param array<string, string> $environment */
    public static function builtin(string $script, array $environment = []): self
    {
        return new self([PHP_BINARY, '-S', '127.0.0.1:0', $script], $environment);
    }

    public function __destruct()
    {
        proc_terminate($this->process);
        proc_close($this->process);
        unlink($this->log);
    }

    public function url(): string
    {
        return $this->url;
    }

    public function log(): string
    {
        return (string) file_get_contents($this->log);
    }

    /**
     * Waits until the log contains $text. A log line may be written after its response was sent.
     */
    public function logWith(string $text): string
    {
        $until = microtime(true) + self::WATCHDOG_S;
        while (!str_contains($log = $this->log(), $text) && microtime(true) < $until) {
            usleep(10_000);
        }

        return $log;
    }

    /** @return array<string, mixed> */
    public function status(): array
    {
        exec(escapeshellarg(self::samovar()) . ' status --json --control ' . escapeshellarg($this->control), $lines);

        return json_decode(implode("\n", $lines), true, flags: JSON_THROW_ON_ERROR);
    }

    /** @param list<string> $headers */
    public function ask(string $target, string $method = 'GET', array $headers = [], string $body = ''): Answer
    {
        $context = stream_context_create(['http' => [
            'method' => $method,
            'header' => [...$headers, 'Connection: close'],
            'content' => $body,
            'ignore_errors' => true,
            'follow_location' => 0,
            'timeout' => self::WATCHDOG_S,
        ]]);
        $read = file_get_contents($this->url . $target, false, $context);

        return Answer::of($http_response_header, (string) $read);
    }

    /**
     * Sends requests until the application is booted in advance. The first request discovers that
     * this is possible.
     */
    public function untilBootedAhead(string $target = '/'): self
    {
        $until = microtime(true) + self::WATCHDOG_S;
        do {
            $this->ask($target);
            $models = array_column($this->status()['workers'], 'model');
            usleep(10_000);
        } while ((\in_array('script', $models, true) || $models === []) && microtime(true) < $until);

        return $this;
    }
}
