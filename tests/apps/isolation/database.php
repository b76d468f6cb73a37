<?php

/** An application that opens its files above the checkpoint. */

declare(strict_types=1);

require __DIR__ . '/src/Database.php';

$database = new Isolation\Database(getenv('ISOLATION_FOLDER'), getenv('ISOLATION_JOURNAL'));
Samovar\checkpoint();
echo json_encode($database->answer(), JSON_THROW_ON_ERROR);
