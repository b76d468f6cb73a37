<?php

declare(strict_types=1);

/**
 * A minimal event loop in the style of Revolt. It runs in its own fiber, and its callbacks in
 * others. A suspended fiber returns control to the loop. {main} runs the loop until {main} itself
 * is resumed.
 */
final class Loop
{
    private array $ready = [];
    private array $streams = [];
    private array $timers = [];
    private ?Fiber $own = null;
    private bool $resumed = false;

    public function queue(callable $callback): void
    {
        $this->ready[] = $callback;
    }

    public function delay(float $seconds, callable $callback): void
    {
        $this->timers[] = [hrtime(true) + (int) ($seconds * 1e9), $callback];
    }

    /** Waits for a line. */
    public function line(mixed $stream): string
    {
        $this->streams[(int) $stream] = [$stream, $this->suspension()];
        $this->suspend();
        unset($this->streams[(int) $stream]);

        return trim(fgets($stream));
    }

    public function pause(float $seconds): void
    {
        $this->delay($seconds, $this->suspension());
        $this->suspend();
    }

    /** Returns a callable that resumes the calling code. */
    public function suspension(): callable
    {
        $fiber = Fiber::getCurrent();

        return $fiber ? fn () => $fiber->isSuspended() && $fiber->resume() : fn () => $this->resumed = true;
    }

    public function suspend(): void
    {
        if (Fiber::getCurrent()) {
            Fiber::suspend();

            return;
        }
        $this->resumed = false;
        $this->own ??= new Fiber($this->run(...));
        $this->own->isStarted() ? $this->own->resume() : $this->own->start();
    }

    private function run(): never
    {
        while (true) {
            for ($ready = $this->ready, $this->ready = []; $ready;) {
                (new Fiber(array_shift($ready)))->start();
            }
            if ($this->resumed) {
                Fiber::suspend(); // Back to {main}.
            } elseif (!$this->ready) {
                $this->look();
            }
        }
    }

    private function look(): void
    {
        $next = $this->timers ? max(0, min(array_column($this->timers, 0)) - hrtime(true)) : 1_000_000_000;
        [$read, $none] = [array_column($this->streams, 0), null];
        $read ? stream_select($read, $none, $none, 0, intdiv($next, 1000) + 1) : usleep(intdiv($next, 1000) + 1);
        foreach ($read as $stream) {
            $this->queue($this->streams[(int) $stream][1]);
        }
        foreach ($this->timers as $i => [$due, $callback]) {
            if ($due <= hrtime(true)) {
                unset($this->timers[$i]);
                $this->queue($callback);
            }
        }
    }
}

/** Two delayed lines and a timer in an event loop. */
function in_a_loop(string $name): array
{
    $loop = new Loop();
    $said = [];
    foreach ([1, 2] as $i) {
        $child = popen("sleep 0.0$i; echo $name $i", 'r');
        $loop->queue(function () use ($loop, $child, &$said): void {
            $said[] = $loop->line($child);
        });
    }
    $loop->queue(function () use ($loop, &$said, $name): void {
        $loop->pause(0.005);
        $said[] = "$name timer";
    });
    while (count($said) < 3) {
        $loop->pause(0.002);
    }
    sort($said);

    return $said;
}

function rule_loop(): array
{
    $task = Samovar\async(fn () => job_pdo_pgsql(1));
    $alone = in_a_loop('main');
    $both = Samovar\parallel([
        fn () => in_a_loop('first'),
        fn () => in_a_loop('second'),
        fn () => job_pdo_mysql(2),
    ]);
    $loop = new Loop();
    $inside = null;
    $loop->queue(function () use (&$inside, $loop): void {
        $loop->pause(0.001);
        $inside = Samovar\parallel([fn () => job_pdo_pgsql(3), fn () => job_redis(4)]);
    });
    while ($inside === null) {
        $loop->pause(0.002);
    }

    return [$alone, $task->await(), $both, $inside];
}

/**
 * A task forks. The waiting tasks continue in one of the two processes, and their connections stay
 * intact.
 */
function rule_processes(): array
{
    $pipe = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    $fork = function () use ($pipe): array {
        usleep(2000);
        $pid = pcntl_fork();
        if ($pid === 0) {
            $all = Samovar\parallel([fn () => usleep(2000) ?? 'a', fn () => Samovar\delay(0.001) ?? 'b']);
            fwrite($pipe[1], implode($all) . "\n");
            posix_kill(posix_getpid(), SIGKILL);
        }
        $said = trim(fgets($pipe[0]));
        pcntl_waitpid($pid, $status);

        return [$said, pcntl_wtermsig($status)];
    };
    $open = function (int $i): array {
        $child = proc_open(['sh', '-c', 'cat; exit 3'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
        fwrite($pipes[0], "line $i");
        fclose($pipes[0]);
        $said = stream_get_contents($pipes[1]);
        while (($status = proc_get_status($child))['running']) {
            usleep(500);
        }

        return [$said, $status['exitcode']];
    };

    return Samovar\parallel([
        $fork,
        fn () => job_pdo_pgsql(1),
        fn () => $open(2),
        fn () => job_pdo_mysql(3),
        fn () => $open(4),
        fn () => job_redis(5),
        fn () => shell_exec('echo 6'),
    ]);
}
