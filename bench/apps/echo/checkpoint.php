<?php

declare(strict_types=1);

use function Samovar\Bench\Echoing\respond;

require __DIR__ . '/handler.php';

Samovar\checkpoint();

respond(file_get_contents('php://input'));
