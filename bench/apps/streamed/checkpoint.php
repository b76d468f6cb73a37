<?php

declare(strict_types=1);

use function Samovar\Bench\Streamed\respond;

require __DIR__ . '/handler.php';

Samovar\checkpoint();

respond();
