<?php

/** A transaction that a request leaves open. */

declare(strict_types=1);

return [
    'boot' => static fn () => new PDO('sqlite::memory:'),
    'leak' => static fn (PDO $database) => $database->beginTransaction(),
    'look' => static fn (PDO $database) => $database->inTransaction(),
    'resident' => 'kept',
    'needs' => ['pdo_sqlite'],
];
