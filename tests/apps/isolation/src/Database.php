<?php

declare(strict_types=1);

namespace Isolation;

/** An SQLite database and a log. Both files are opened above the checkpoint. */
final class Database
{
    /** Long enough for a loaded machine to flush the data of two alternating writers. */
    private const TIMEOUT_MS = 60_000;

    private readonly \PDO $pdo;
    private readonly \SQLite3 $sqlite3;

    /** @var resource */
    private $log;

    public function __construct(string $folder, string $journal)
    {
        $this->pdo = new \PDO("sqlite:$folder/teas");
        $this->pdo->exec('PRAGMA busy_timeout = ' . self::TIMEOUT_MS);
        $this->pdo->exec("PRAGMA journal_mode = $journal");
        $this->pdo->exec('CREATE TABLE IF NOT EXISTS teas (name)');
        // Fills the page cache with data that is soon out of date.
        $this->pdo->query('SELECT count(*) FROM teas')->fetchColumn();
        $this->sqlite3 = new \SQLite3("$folder/teas");
        $this->sqlite3->busyTimeout(self::TIMEOUT_MS);
        $this->sqlite3->querySingle('SELECT count(*) FROM teas');
        $this->log = fopen("$folder/log", 'a+');
    }

    public function answer(): mixed
    {
        return match (parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH)) {
            '/write' => $this->write($_GET['row']),
            '/read' => $this->read($_GET['row']),
            '/count' => $this->count(),
            '/leave' => $this->leave($_GET['through'], $_GET['row']),
            '/log' => fwrite($this->log, $_GET['line'] . "\n"),
            '/logged' => explode("\n", trim(stream_get_contents($this->log, null, 0))),
        };
    }

    private function write(string $row): string
    {
        $this->pdo->prepare('INSERT INTO teas VALUES (?)')->execute([$row]);

        return 'written';
    }

    private function read(string $row): string
    {
        $found = $this->pdo->prepare('SELECT count(*) FROM teas WHERE name = ?');
        $found->execute([$row]);

        return (string) $found->fetchColumn();
    }

    /** @return list<mixed> */
    private function count(): array
    {
        return [
            (int) $this->pdo->query('SELECT count(*) FROM teas')->fetchColumn(),
            $this->sqlite3->querySingle('SELECT count(*) FROM teas'),
            $this->pdo->query('PRAGMA integrity_check')->fetchColumn(),
            $this->pdo->query('PRAGMA journal_mode')->fetchColumn(),
        ];
    }

    /** Leaves a transaction open, with enough data that part of it is already on the disk. */
    private function leave(string $through, string $row): bool
    {
        $sql = "BEGIN IMMEDIATE; INSERT INTO teas VALUES ('left $row');
            PRAGMA cache_size = 1; INSERT INTO teas SELECT hex(randomblob(1000)) FROM json_each('[1,2,3,4,5,6,7,8]')";

        return $through === 'pdo' ? $this->pdo->exec($sql) !== false : $this->sqlite3->exec($sql);
    }
}
