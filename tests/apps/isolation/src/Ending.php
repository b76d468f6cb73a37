<?php

declare(strict_types=1);

namespace Isolation;

/** Changes of a request before its end, and the expected state after it. */
final class Ending
{
    public static int $requests = 0;

    /** @var list<object> Objects of boot: their destructors run at each request's end. */
    public static array $held = [];

    private static string $memory = '';

    /** Appends a line to the request's trace. Requests that only look write no trace. */
    public static function trace(string $line): void
    {
        if (self::$requests > 0) {
            file_put_contents(self::file('trace'), "$line\n", FILE_APPEND);
        }
    }

    public static function file(string $name): string
    {
        return $_GET['folder'] . "/$name";
    }

    /** Changes state that the next request must not see. */
    public static function soil(): void
    {
        self::$requests++;
        self::$memory = str_repeat('dirt', 1 << 20);
        $GLOBALS['dirt'] = new \ArrayObject(range(1, 1000));
        $GLOBALS['loud'] = new Loud('the request');
        ini_set('precision', '3');
        setlocale(LC_ALL, 'C');
        umask(0);
        session_id('ending');
        session_start();
        $_SESSION['how'] = $_GET['how'];
        register_shutdown_function(self::trace(...), 'shutdown function of the request');
    }

    /** Opens resources that must be closed at the end of the request. */
    public static function open(): void
    {
        $GLOBALS['gz'] = fopen('compress.zlib://' . self::file('text.gz'), 'w');
        fwrite($GLOBALS['gz'], 'compressed');
        $GLOBALS['sqlite'] = new \PDO('sqlite:' . self::file('database'));
        $GLOBALS['sqlite']->exec('CREATE TABLE teas (name)');
        $GLOBALS['sqlite']->beginTransaction();
        $GLOBALS['sqlite']->exec('INSERT INTO teas VALUES ("uncommitted")');
        $GLOBALS['temporary'] = tmpfile();
        $GLOBALS['writer'] = new \XMLWriter();
        $GLOBALS['writer']->openUri(self::file('tea.xml'));
        $GLOBALS['writer']->writeElement('tea', 'green');
        // The last object that PHP closes after a fatal error. Once its file exists, all others are
        // closed.
        $GLOBALS['zip'] = new \ZipArchive();
        $GLOBALS['zip']->open(self::file('archive.zip'), \ZipArchive::CREATE);
        $GLOBALS['zip']->addFromString('tea.txt', 'green');
    }

    /** @return array<string, mixed> the state that a request sees before it changes anything */
    public static function state(): array
    {
        return [
            'pid' => getmypid(),
            'requests' => self::$requests,
            'memory' => memory_get_usage() >> 14,
            'dirt' => isset($GLOBALS['dirt']),
            'precision' => ini_get('precision'),
            'locale' => setlocale(LC_ALL, '0'),
            'umask' => umask(),
            'session' => [session_status(), isset($_SESSION)],
            'buffers' => ob_get_level(),
            'files' => \count(scandir('/proc/self/fd')),
            'time limit' => ini_get('max_execution_time'),
            'held' => \count(self::$held),
        ];
    }

    /** @return array<string, mixed> the files that the previous request left on the disk */
    public static function artifacts(): array
    {
        // Reads the file that is written last first: once it exists, all others exist.
        $zip = new \ZipArchive();
        $last = [
            'zip' => @$zip->open(self::file('archive.zip')) === true ? $zip->getFromName('tea.txt') : null,
            'gz' => @file_get_contents('compress.zlib://' . self::file('text.gz')),
        ];
        $sqlite = new \PDO('sqlite:' . self::file('database'));
        $session = session_save_path() . '/sess_ending';
        $teas = $sqlite->query('SELECT count(*) FROM sqlite_master')->fetchColumn();

        return $last + [
            'trace' => @file(self::file('trace'), FILE_IGNORE_NEW_LINES),
            'tables' => $teas,
            'rows' => $teas > 0 ? $sqlite->query('SELECT count(*) FROM teas')->fetchColumn() : null,
            'xml' => @file_get_contents(self::file('tea.xml')),
            'session' => @file_get_contents($session),
            'handler' => @file_get_contents(self::file('session')),
        ];
    }
}
