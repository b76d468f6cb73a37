<?php

declare(strict_types=1);

use function Samovar\Bench\Echoing\respond;

require dirname(__DIR__) . '/handler.php';

respond(file_get_contents('php://input'));
