<?php

declare(strict_types=1);

// Calls Samovar\serve(). The server finds this name in the text and boots the application at its
// start.

use Nyholm\Psr7\Factory\Psr17Factory;
use Samovar\Bench\Psr7\Echoing;

use function Samovar\Runtime\Psr15\serve;

require '/usr/share/php/Nyholm/Psr7/autoload.php';
require __DIR__ . '/handlers.php';

serve(new Echoing(new Psr17Factory()));
