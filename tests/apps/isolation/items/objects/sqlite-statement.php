<?php

/** A statement that was prepared above the checkpoint, with part of its rows read. */

declare(strict_types=1);

return [
    'boot' => static function (): SQLite3Result {
        $database = new SQLite3(':memory:');
        $statement = $database->prepare('SELECT value FROM json_each(?)');
        $statement->bindValue(1, '[1, 2, 3, 4, 5, 6, 7, 8, 9]');

        return $statement->execute();
    },
    'leak' => static fn (SQLite3Result $rows) => $rows->fetchArray(),
    'look' => static fn (SQLite3Result $rows) => $rows->fetchArray(SQLITE3_NUM),
    'resident' => 'kept',
    'needs' => ['sqlite3'],
];
