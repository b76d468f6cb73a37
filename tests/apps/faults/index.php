<?php

/** Mistakes of applications, one per path. tests/suite/faults.rs requests them. */

declare(strict_types=1);

namespace Faults;

function waitForFile(string $file): void
{
    while (!file_exists($file)) {
        usleep(2000);
        clearstatcache();
    }
}

/** Writes $bytes over the ring, $at bytes from its start. */
function scribble($memory, int $ring, int $at, string $bytes): void
{
    fseek($memory, $ring + $at);
    if (fwrite($memory, $bytes) !== strlen($bytes)) {
        throw new \Exception('the ring cannot be written');
    }
}

function ringAddress(): int
{
    preg_match('~^([0-9a-f]+)-.*memfd:samovar-ring~m', file_get_contents('/proc/self/maps'), $found);
    return (int) hexdec($found[1]);
}

/**
 * Returns the slot of this request: the only one in use while there is one client. A hostile script
 * can find it in the same way.
 */
function ownSlot($memory, int $ring, int $slots): int
{
    for ($i = 0; $i < $slots; $i++) {
        $at = (int) $_GET['slots'] + $i * (int) $_GET['slot_bytes'];
        fseek($memory, $ring + $at);
        $word = unpack('P', fread($memory, 8))[1];
        if (($word & 0xff) === (int) $_GET['taken'] && ($word >> 8 & 0xffffff) !== 0) {
            return $at;
        }
    }
    throw new \Exception('no slot is taken where the slots should be');
}

/** ?at=OFFSET[&slots=OFFSET&slot_bytes=N&taken=STATE]&hex=BYTES[&times=N]: a worker that writes
 * garbage into the ring. */
function garbage(): void
{
    $memory = fopen('/proc/self/mem', 'r+b');
    stream_set_read_buffer($memory, 0);
    stream_set_write_buffer($memory, 0);
    $ring = ringAddress();
    $from = isset($_GET['slots']) ? ownSlot($memory, $ring, 16) : 0;
    $bytes = str_repeat(hex2bin($_GET['hex']), (int) ($_GET['times'] ?? 1));
    scribble($memory, $ring, $from + (int) $_GET['at'], $bytes);
    echo 'written';
}

/**
 * Tries to shorten and to lengthen the ring's memory file through every file descriptor of it, and
 * prints the results. It runs external commands, because PHP resolves the link, whose target is not
 * a path.
 */
function resize(): void
{
    $template = (int) explode(' ', file_get_contents('/proc/self/stat'))[3];
    $supervisor = (int) explode(' ', file_get_contents("/proc/$template/stat"))[3];
    foreach ([getmypid(), $template, $supervisor] as $pid) {
        foreach (glob("/proc/$pid/fd/*") as $link) {
            if (!str_contains((string) @readlink($link), 'memfd:samovar-ring')) {
                continue;
            }
            $statuses = [];
            foreach (["truncate -s 0 $link", "truncate -s +4096 $link", ": > $link"] as $command) {
                exec("$command 2>/dev/null", result_code: $statuses[]);
            }
            echo "$link ", json_encode($statuses), "\n";
        }
    }
}

/** Writes until it is stopped, and stores the connection status at its end in a file. */
function stream(): void
{
    ignore_user_abort(isset($_GET['ignore']));
    register_shutdown_function(function (): void {
        file_put_contents($_GET['file'], 'status ' . connection_status());
    });
    while (!connection_aborted()) {
        echo str_repeat('x', 1000), "\n";
        flush();
        usleep(5000);
    }
    echo 'into the void';
    flush();
    // Reached only when the abort is ignored.
    file_put_contents($_GET['file'] . '.on', (string) connection_aborted());
}

/** Flushes until it is stopped, although its client may need no body. Ends like `stream`. */
function serve_on(): void
{
    ignore_user_abort(isset($_GET['ignore']));
    register_shutdown_function(function (): void {
        file_put_contents($_GET['file'], 'status ' . connection_status());
    });
    http_response_code((int) ($_GET['status'] ?? 200));
    if (isset($_GET['length'])) {
        header("Content-Length: {$_GET['length']}");
    }
    echo "ten bytes\n";
    flush();
    while (!connection_aborted()) {
        echo isset($_GET['more']) ? 'more' : '';
        flush();
        usleep(5000);
    }
    file_put_contents($_GET['file'] . '.on', (string) connection_aborted());
}

/**
 * Sends nothing until the file exists, even if the client has left. Writes a second file at its
 * end.
 */
function outlive(): void
{
    if (isset($_GET['ignore'])) {
        ignore_user_abort((bool) $_GET['ignore']);
    }
    waitForFile($_GET['file']);
    file_put_contents($_GET['file'] . '.done', '');
}

function events(): void
{
    header('Content-Type: text/event-stream');
    for ($n = 0; $n < 5; $n++) {
        waitForFile("{$_GET['file']}.$n");
        echo "data: $n\n\n";
        flush();
    }
}

function flood(): void
{
    $piece = str_repeat('0123456789abcde' . "\n", 4096);
    $bytes = (int) $_GET['bytes'];
    for ($sent = 0; $sent < $bytes; $sent += strlen($piece)) {
        echo $piece;
        if (isset($_GET['file'])) {
            file_put_contents($_GET['file'], (string) $sent);
        }
    }
}

/**
 * ?say=WORD&times=N[&length=BYTES][&raw=1]: logs many lines. With raw it writes directly to
 * php://stderr.
 */
function chatter(): void
{
    $line = str_pad($_GET['say'], (int) ($_GET['length'] ?? 0), $_GET['pad'] ?? 'x');
    $stderr = fopen('php://stderr', 'w');
    for ($n = 0; $n < (int) $_GET['times']; $n++) {
        isset($_GET['raw']) ? fwrite($stderr, "$line $n\n") : error_log("$line $n");
    }
    echo 'said';
}

$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
set_time_limit(0);
switch ($path) {
    case '/chatter':
        chatter();
        break;
    case '/mumble':
        // Writes output without a line end.
        fwrite(fopen('php://stderr', 'w'), $_GET['say']);
        posix_kill(getmypid(), SIGKILL);
        break;
    case '/header':
        header('Bad Name: x');
        echo 'sent';
        break;
    case '/sleep':
        usleep(1000 * (int) $_GET['ms']);
        echo 'slept';
        break;
    case '/wait':
        waitForFile($_GET['file']);
        echo 'waited';
        break;
    case '/drip':
        for ($n = 0; $n < (int) $_GET['n']; $n++) {
            echo "drip $n\n";
            flush();
            usleep(1000 * (int) $_GET['ms']);
        }
        break;
    case '/half':
        echo 'half';
        flush();
        waitForFile($_GET['file']);
        posix_kill(getmypid(), SIGKILL);
        break;
    case '/signal':
    case '/signal/other':
    case '/signal/killed':
        posix_kill(getmypid(), (int) $_GET['signal']);
        usleep(50_000);
        break;
    case '/loop':
        // phpcs:ignore
        while (true) {
        }
    case '/garbage':
        garbage();
        break;
    case '/resize':
        resize();
        break;
    case '/serve-on':
        serve_on();
        break;
    case '/stream':
        stream();
        break;
    case '/outlive':
        outlive();
        break;
    case '/events':
        events();
        break;
    case '/flood':
        flood();
        break;
    case '/mark':
        file_put_contents($_GET['file'], 'here');
        echo 'marked';
        break;
    case '/upload':
        $file = $_FILES['file']['tmp_name'];
        echo filesize($file), ' ', md5_file($file), ' ', memory_get_peak_usage();
        break;
    case '/input':
        echo md5(file_get_contents('php://input'));
        break;
    case '/finish':
        echo 'the client has this';
        $finished = fastcgi_finish_request() && !fastcgi_finish_request();
        waitForFile($_GET['file']);
        // The connection is closed. Output would end the script here, as under php-fpm.
        file_put_contents($_GET['file'] . '.done', $finished ? 'and the script went on' : 'not finished');
        break;
    default:
        echo 'hello from ', getmypid();
}
