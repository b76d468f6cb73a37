<?php

declare(strict_types=1);

require dirname(__DIR__) . '/environment.php';
require dirname(__DIR__, 4) . '/examples/symfony/public/index.php';
