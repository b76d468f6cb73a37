<?php

declare(strict_types=1);

// Calls Samovar\serve(). The server finds this name in the text and boots the application at its
// start.
require __DIR__ . '/environment.php';
require dirname(__DIR__, 3) . '/examples/symfony/public/resident.php';
