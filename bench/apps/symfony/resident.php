<?php

declare(strict_types=1);

// It calls Samovar\serve(): these words here make the server boot it at its start.
require __DIR__ . '/environment.php';
require dirname(__DIR__, 3) . '/examples/symfony/public/resident.php';
