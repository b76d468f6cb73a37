<?php

declare(strict_types=1);

// Calls Samovar\serve(). The server finds this name in the text and boots the application at its
// start.

use GuzzleHttp\Psr7\HttpFactory;
use Samovar\Bench\Psr7\Hello;

use function Samovar\Bench\Psr7\serveByGuzzle;

require '/usr/share/php/GuzzleHttp/Psr7/autoload.php';
require __DIR__ . '/handlers.php';
require __DIR__ . '/guzzle.php';

serveByGuzzle(new Hello(new HttpFactory()));
