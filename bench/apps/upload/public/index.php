<?php

declare(strict_types=1);

use function Samovar\Bench\Upload\respond;

require dirname(__DIR__) . '/handler.php';

respond();
