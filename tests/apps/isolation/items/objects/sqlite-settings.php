<?php

/** Attributes, functions and the last error of a database that was opened above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static fn () => new PDO('sqlite::memory:', options: [PDO::ATTR_ERRMODE => PDO::ERRMODE_SILENT]),
    'leak' => static function (PDO $database): void {
        $database->sqliteCreateFunction('dirt', static fn () => 77);
        $database->setAttribute(PDO::ATTR_DEFAULT_FETCH_MODE, PDO::FETCH_NUM);
        $database->exec('nonsense');
    },
    'look' => static fn (PDO $database) => [
        $database->errorCode(),
        $database->getAttribute(PDO::ATTR_DEFAULT_FETCH_MODE),
        $database->query('SELECT dirt()') !== false,
    ],
    'resident' => 'kept',
    'needs' => ['pdo_sqlite'],
];
