<?php

/*
 * Cost of an interposed call that does not wait. `?calls=…` makes each call this number of times,
 * and the same libc call under another name that is not interposed, alternating batch by batch.
 * Returns the nanoseconds of each call per batch, [interposed, libc's own]. With `&task=1` a task
 * waits in the meantime.
 */

declare(strict_types=1);

const CALLS_MAX = 1_000_000;
const BATCH = 1000;

$calls = min(CALLS_MAX, max(1, (int) ($_GET['calls'] ?? 1)));
$libc = FFI::cdef(<<<'C'
    struct pollfd { int fd; short events; short revents; };
    int open(const char *path, int flags);
    long read(int fd, void *to, size_t room);
    long __read(int fd, void *to, size_t room);
    long write(int fd, const void *from, size_t len);
    long __write(int fd, const void *from, size_t len);
    int poll(struct pollfd *fds, unsigned long count, int limit_ms);
    int __poll(struct pollfd *fds, unsigned long count, int limit_ms);
    int close(int fd);
    int __close(int fd);
    C);
$byte = $libc->new('char[1]');
$zero = $libc->open('/dev/zero', 0);
$null = $libc->open('/dev/null', 1);
$polled = $libc->new('struct pollfd[1]');
$polled[0]->fd = $zero;
$polled[0]->events = 1;

/* One loop each: the cost of PHP's own part is the same in both. */
$pairs = [
    'read' => [
        static function (int $n) use ($libc, $zero, $byte): void {
            for (; $n > 0; $n--) {
                $libc->read($zero, $byte, 1);
            }
        },
        static function (int $n) use ($libc, $zero, $byte): void {
            for (; $n > 0; $n--) {
                $libc->__read($zero, $byte, 1);
            }
        },
    ],
    'write' => [
        static function (int $n) use ($libc, $null, $byte): void {
            for (; $n > 0; $n--) {
                $libc->write($null, $byte, 1);
            }
        },
        static function (int $n) use ($libc, $null, $byte): void {
            for (; $n > 0; $n--) {
                $libc->__write($null, $byte, 1);
            }
        },
    ],
    'poll' => [
        static function (int $n) use ($libc, $polled): void {
            for (; $n > 0; $n--) {
                $libc->poll($polled, 1, 0);
            }
        },
        static function (int $n) use ($libc, $polled): void {
            for (; $n > 0; $n--) {
                $libc->__poll($polled, 1, 0);
            }
        },
    ],
    'close' => [
        static function (int $n) use ($libc): void {
            for (; $n > 0; $n--) {
                $libc->close(-1);
            }
        },
        static function (int $n) use ($libc): void {
            for (; $n > 0; $n--) {
                $libc->__close(-1);
            }
        },
    ],
];

$task = isset($_GET['task']) ? Samovar\async(static fn () => usleep(60_000_000)) : null;
$ns = [];
for ($done = 0; $done < $calls; $done += BATCH) {
    foreach ($pairs as $name => $pair) {
        foreach ($pair as $which => $loop) {
            $from = hrtime(true);
            $loop(BATCH);
            $ns[$name][$which][] = (hrtime(true) - $from) / BATCH;
        }
    }
}
$task?->cancel();
$libc->close($zero);
$libc->close($null);
header('Content-Type: application/json');
echo json_encode($ns);
