<?php

/** An SQLite database in memory, through PDO. */

declare(strict_types=1);

return [
    'boot' => static function (): PDO {
        $database = new PDO('sqlite::memory:');
        $database->exec('CREATE TABLE teas (name); INSERT INTO teas VALUES ("green")');

        return $database;
    },
    'leak' => static fn (PDO $database) => $database->exec('INSERT INTO teas VALUES ("dirt"); CREATE TABLE dirt (n)'),
    'look' => static fn (PDO $database) => [
        $database->query('SELECT name FROM teas')->fetchAll(PDO::FETCH_COLUMN),
        $database->query('SELECT count(*) FROM sqlite_master')->fetchColumn(),
    ],
    'resident' => 'kept',
    'needs' => ['pdo_sqlite'],
];
