<?php

/**
 * Pages whose response depends only on the request, byte for byte, and pages that misbehave on
 * purpose. tests/suite/chaos.rs requests both at the same time. Each front controller in the parent
 * folder runs them in one model.
 */

declare(strict_types=1);

namespace Chaos;

/** A unique value of the request, repeated in its response. */
function nonce(): string
{
    return $_GET['nonce'] ?? '';
}

function checksum(string $bytes): string
{
    return hash('fnv1a64', $bytes);
}

/** One line, which a longer response repeats. */
function line(): string
{
    return nonce() . ' ' . checksum(nonce()) . "\n";
}

function hello(): void
{
    echo 'hello ', nonce(), ' ', checksum(nonce()), ' v', VERSION, "\n";
}

function upload(): void
{
    $file = $_FILES['file'] ?? null;
    if ($file === null || $file['error'] !== UPLOAD_ERR_OK) {
        http_response_code(507);
        echo 'no file: ', $file['error'] ?? 'none';
        return;
    }
    echo nonce(), ' ', $file['size'], ' ', hash_file('fnv1a64', $file['tmp_name']), "\n";
}

/** Sends 20 MB, for slow clients. */
function big(): void
{
    $piece = str_repeat(line(), 1000);
    for ($left = 20_000_000; $left > 0; $left -= strlen($piece)) {
        echo $piece;
    }
}

function cpu(int $milliseconds): void
{
    $end = microtime(true) + $milliseconds / 1000;
    while (microtime(true) < $end) {
        md5('busy');
    }
    echo 'done';
}

/** Overflows the stack by recursion in C: a real segmentation fault, at an arbitrary place. */
function overflow(): void
{
    array_map(static fn () => overflow(), [1]);
}

/** Allocates this much memory without PHP's memory limit. */
function hog(int $megabytes): void
{
    ini_set('memory_limit', '-1');
    $held = [];
    for ($i = 0; $i < $megabytes; $i++) {
        $held[] = str_repeat(chr($i & 0xff), 1 << 20);
    }
    echo count($held);
}

function crash(string $how): void
{
    switch ($how) {
        case 'segv':
            posix_kill(posix_getpid(), SIGSEGV);
            break;
        case 'abort':
            posix_kill(posix_getpid(), SIGABRT);
            break;
        case 'kill':
            posix_kill(posix_getpid(), SIGKILL);
            break;
        case 'stack':
            ini_set('memory_limit', '-1');
            overflow();
            break;
        case 'exit':
            exit(3);
        case 'fatal':
            undefined_function();
            break;
        case 'exception':
            throw new \RuntimeException('nobody catches this');
        case 'memory':
            ini_set('memory_limit', '16M');
            str_repeat('x', 1 << 26);
            break;
    }
    // A signal that a process sends to itself may arrive a moment later.
    usleep(50_000);
}

/** Writes this number of bytes of PHP messages, and makes the server warn. */
function complain(int $bytes): void
{
    for ($left = $bytes; $left > 0; $left -= 200) {
        error_log(str_repeat('complaint ', 20));
    }
    header('Bad Name: x');
    echo 'complained';
}

function finish(int $milliseconds): void
{
    echo 'finished';
    fastcgi_finish_request();
    usleep(1000 * $milliseconds);
}

/** Truncates the ring's memory file through a file descriptor of a worker. */
function truncate_ring(): void
{
    foreach (glob('/proc/' . getmypid() . '/fd/*') as $link) {
        if (str_contains((string) @readlink($link), 'memfd:samovar-ring')) {
            // Runs an external command, because PHP resolves the link, whose target is not a path.
            exec("truncate -s 0 $link 2>/dev/null", $output, $status);
            echo $status === 0 ? 'cut' : 'refused';
            return;
        }
    }
    echo 'not found';
}

/** Writes garbage over the ring, or over the memory of another process that it can reach. */
function garbage(int $at, string $hex, int $times): void
{
    preg_match('~^([0-9a-f]+)-.*memfd:samovar-ring~m', file_get_contents('/proc/self/maps'), $found);
    $memory = fopen('/proc/self/mem', 'r+b');
    stream_set_write_buffer($memory, 0);
    fseek($memory, (int) hexdec($found[1]) + $at);
    echo fwrite($memory, str_repeat(hex2bin($hex), $times));
}

function answer(): void
{
    $milliseconds = (int) ($_GET['ms'] ?? 0);
    switch (parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH)) {
        case '/hello':
            hello();
            break;
        case '/slow':
            usleep(1000 * $milliseconds);
            hello();
            break;
        case '/cpu':
            cpu($milliseconds);
            break;
        case '/medium':
            echo str_repeat(line(), 6000);
            break;
        case '/big':
            big();
            break;
        case '/echo':
            $body = file_get_contents('php://input');
            echo nonce(), ' ', strlen($body), ' ', checksum($body), "\n";
            break;
        case '/upload':
            upload();
            break;
        case '/crash':
            crash($_GET['how']);
            break;
        case '/hog':
            hog((int) $_GET['mb']);
            break;
        case '/complain':
            complain((int) ($_GET['bytes'] ?? 0));
            break;
        case '/finish':
            finish($milliseconds);
            break;
        case '/truncate':
            truncate_ring();
            break;
        case '/garbage':
            garbage((int) $_GET['at'], $_GET['hex'], (int) $_GET['times']);
            break;
        default:
            http_response_code(404);
            echo 'no such page';
    }
}
