<?php

declare(strict_types=1);

use function Samovar\Bench\Upload\respond;

require __DIR__ . '/handler.php';

Samovar\checkpoint();

respond();
