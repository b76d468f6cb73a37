<?php

declare(strict_types=1);

use function Samovar\Bench\Mixed\respond;

require dirname(__DIR__) . '/handler.php';

respond();
