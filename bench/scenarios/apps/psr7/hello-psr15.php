<?php

declare(strict_types=1);

// It calls Samovar\serve(): these words here make the server boot it at its start.

use Samovar\Bench\Psr7\Hello;
use Samovar\Runtime\Psr17\Factory;

use function Samovar\Runtime\Psr15\serve;

require __DIR__ . '/handlers.php';

serve(new Hello(new Factory()));
